// now_result.cpp: the columns of what `marey now` reports.
#include <algorithm>
#include <filesystem>

#include <marey/now.h>
#include <marey/outside.h>
#include <marey/results.h>

#include "analyze/result_keys.h"

namespace marey {
namespace now_columns {
namespace {
using enum ResultUnit;
using enum ResultShown;

constexpr std::string_view kStates[] = {"running", "finished", "exited", "killed", "ended"};

struct ProcessRow {
    std::int64_t pid = 0;
    std::optional<std::int32_t> rank{};
    std::string host{}, program{}, command_line{}, state{};
    std::optional<std::int32_t> exit_code{}, exit_signal{};
    std::optional<std::int64_t> recorded_ns{}, idle_ns{};
    std::optional<std::string> file{};
    std::optional<std::uint64_t> bytes{};
    std::int64_t end_realtime_ns = 0;
    std::uint64_t other_threads = 0, in_flight = 0;
};

/// A range that is open, or a call that was seen from outside.
struct OpenRow {
    std::int64_t pid = 0;
    std::optional<std::string> thread{};
    std::optional<std::uint64_t> thread_id{};
    std::size_t level = 0;
    std::optional<std::int64_t> open_ns{}, usual_ns{};
    bool is_waiting = false;
    std::string name{};
    std::optional<std::int32_t> line{};
    std::string kind{};
};

/// A thread that was seen from outside.
struct ThreadRow {
    const OutsideProcess& process;
    const OutsideThread& it;
    bool is_deadlocked() const {
        return std::ranges::any_of(process.deadlocks, [this](const std::vector<std::int64_t>& circle) {
            return std::ranges::find(circle, it.os_tid) != circle.end();
        });
    }
};

struct TaskRow {
    const Trace& trace;
    const ProcessNow& process;
    const TaskNow& it;
    std::optional<std::string> text(StringId id) const { return text_or_null(std::string(trace.string(id))); }
};

using DeviceRow = OfDevice<DeviceNow>;

/// The tables with their columns.
struct Tables {
    Tables();

    ResultRows<ProcessRow> processes{"now_processes", "The processes, and how their recordings ended"};
    ResultRows<OpenRow> ranges{"now_ranges", "The open ranges of each thread, innermost first"};
    ResultRows<TaskRow> tasks{"now_tasks", "The tasks of event loops that wait, longest first"};
    ResultRows<DeviceRow> devices =
        device_rows<DeviceRow>("now_devices", "The devices, and their newest work");
    ResultRows<ThreadRow> threads{"now_threads", "The threads of processes that are not recorded"};
};

Tables::Tables() {
    processes.columns({
        {"pid", &ProcessRow::pid, "process id", "pid", Yes, None},
        {"rank", &ProcessRow::rank, "its rank", "rank", Used, None},
        {"host", &ProcessRow::host, "name of its host"},
        {"program", &ProcessRow::program, "path of its executable"},
        {"command_line", &ProcessRow::command_line, "arguments", "command"},
        {"state", &ProcessRow::state,
         "running, finished, exited, killed, or ended: without closing its capture, nobody knows how; "
         "unrecorded: it runs, and was looked at from outside",
         "state"},
        {"exit_code", &ProcessRow::exit_code, "its exit code", "", No, None},
        {"exit_signal", &ProcessRow::exit_signal, "the signal that killed it", "", No, None},
        {"recorded_ns", &ProcessRow::recorded_ns, "time since the recording began", "recorded"},
        {"idle_ns", &ProcessRow::idle_ns, "time since a range ended", "last event"},
        {"file", &ProcessRow::file, "its capture", "file", Name},
        {"bytes", &ProcessRow::bytes, "size of the capture", "size"},
        {"end_realtime_ns", &ProcessRow::end_realtime_ns, "now, or its last time, since 1970", "", No, None},
        {"other_threads", &ProcessRow::other_threads, "threads without an open range"},
        {"in_flight", &ProcessRow::in_flight,
         "launches of device work after the newest that has ended and that its driver has reported"},
    });
    ranges.columns({
        {"pid", &OpenRow::pid, "process id", "pid", Yes, None},
        {"thread", &OpenRow::thread, "name of the thread", "thread"},
        {"thread_id", &OpenRow::thread_id, "id of the thread; of an unrecorded process: that of the kernel",
         "", No, None},
        {"level", &OpenRow::level, "0: innermost", "level", Yes, None},
        {"open_ns", &OpenRow::open_ns, "for how long it has been open", "open"},
        {"usual_ns", &OpenRow::usual_ns,
         "median time of finished ranges with this name, in the newest part of the log", "usually"},
        {"is_waiting", &OpenRow::is_waiting, "a known wait: for events, locks, the network or the clock"},
        {"name", &OpenRow::name, "name of the range", "name", Call},
        {"line", &OpenRow::line, "line that runs, in a Python function of an unrecorded process", "", No,
         None},
        {"kind", &OpenRow::kind, "range; of an unrecorded process: python, native, or interpreter"},
    });
    tasks.columns({
        {"pid", [](auto& r) { return process_id(r.trace, r.process.process); }, "process id", "pid", Yes,
         None},
        {"task", [](auto& r) { return r.text(r.it.name); }, "name of the task", "task"},
        {"suspended_ns", &TaskNow::suspended_ns, "time since it ran last", "suspended"},
        {"coroutine", [](auto& r) { return r.text(r.it.coroutine); }, "name of its coroutine function",
         "coroutine", Call},
        {"awaits", [](auto& r) { return r.text(r.it.awaits); },
         "name of the innermost coroutine in it that waits; empty: itself", "awaits", Call},
    });
    devices.columns({
        {"last", [](auto& r) { return std::string(r.trace.range_name(r->last)); }, "name of its newest work",
         "last", Call},
        {"idle_ns", [](auto& r) { return r->idle_ns; }, "time since that ended", "idle"},
    });
    threads.columns({
        {"pid", [](auto& r) { return r.process.pid; }, "process id", "pid", Yes, None},
        {"thread", [](auto& r) { return r.it.name; }, "name of the thread", "thread"},
        {"thread_id", &OutsideThread::os_tid, "id of the thread", "id", Yes, None},
        {"waits_for", [](auto& r) { return text_or_null(wait_name(r.it.wait)); },
         "what it waits for: GIL, lock, sleep, input or output, a process, or the kernel; empty: it runs",
         "waits for"},
        {"waits_for_thread_id", [](auto& r) { return when(r.it.waits_for != 0, r.it.waits_for); },
         "the thread that has what it waits for, if that is known", "of", Used, None},
        {"is_deadlocked", [](auto& r) { return r.is_deadlocked(); }, "it waits for threads that wait for it"},
        {"holds_gil", &OutsideThread::holds_gil, "it holds the interpreter's lock"},
        {"is_python", &OutsideThread::is_python, "the interpreter knows it"},
        {"is_torn", &OutsideThread::is_torn, "its Python frames changed during every try to read them"},
        {"is_cut", &OutsideThread::is_cut, "it has more outer frames"},
    });
}

Result result_of(const Trace& trace, Tables& tables) {
    return made_result(trace, tables.processes, tables.ranges, tables.tasks, tables.devices, tables.threads);
}

ProcessRow process_row(const Trace& trace, const ProcessNow& now, const std::string& file) {
    const ProcessInfo& info = trace.processes()[now.process];
    std::error_code error;
    const std::uint64_t size = std::filesystem::file_size(file, error);
    return {.pid = info.pid,
            .rank = when(info.node >= 0, info.node),
            .host = std::string(trace.string(info.host)),
            .program = std::string(trace.string(info.name)),
            .command_line = std::string(trace.string(info.command_line)),
            .state = std::string(kStates[static_cast<std::size_t>(now.state)]),
            .exit_code = when(now.exit_code >= 0, now.exit_code),
            .exit_signal = when(now.exit_signal > 0, now.exit_signal),
            .recorded_ns = now.end_ns - trace.window().start_ns,
            .idle_ns = when(now.last_ns > 0, now.end_ns - now.last_ns),
            .file = text_or_null(file),
            .bytes = when(!error, size),
            .end_realtime_ns = now.end_ns + info.realtime_offset_ns,
            .other_threads = now.other_threads,
            .in_flight = now.in_flight};
}

OpenRow open_row(const Trace& trace, const ThreadNow& thread, std::size_t level) {
    const OpenNow& open = thread.ranges[level];
    return {.pid = trace.processes()[trace.threads()[thread.thread].process].pid,
            .thread = thread_name(trace, thread.thread),
            .thread_id = thread_id(trace, thread.thread),
            .level = level,
            .open_ns = open.open_ns,
            .usual_ns = open.usual_ns,
            .is_waiting = open.is_waiting,
            .name = std::string(trace.string(trace.sites()[trace.ranges().site[open.range]].name)),
            .kind = "range"};
}

}  // namespace
}  // namespace now_columns

Result now_result(const Trace& trace, const std::string& file) {
    using namespace now_columns;
    Tables tables;
    const std::vector<ProcessNow> all = now(trace);
    for (const ProcessNow& process : all) {
        tables.processes.add(process_row(trace, process, file));
        for (const TaskNow& task : process.tasks) tables.tasks.add({trace, process, task});
        for (const DeviceNow& device : process.devices)
            tables.devices.add({trace, process.process, device.device, device});
        for (const ThreadNow& thread : process.threads) {
            for (std::size_t level = 0; level < thread.ranges.size(); ++level)
                tables.ranges.add(open_row(trace, thread, level));
        }
    }
    return result_of(trace, tables);
}

Result now_result(const OutsideProcess& process) {
    using namespace now_columns;
    Tables tables;
    std::string command_line;
    for (const std::string& argument : process.arguments)
        command_line += (command_line.empty() ? "" : " ") + argument;
    ProcessRow row{.pid = process.pid, .program = process.program, .command_line = command_line};
    row.state = "unrecorded";
    row.end_realtime_ns = process.realtime_ns;
    for (const OutsideThread& thread : process.threads) {
        tables.threads.add({process, thread});
        if (thread.frames.empty()) ++row.other_threads;
        for (std::size_t level = 0; level < thread.frames.size(); ++level) {
            const OutsideFrame& frame = thread.frames[level];
            OpenRow open{.pid = process.pid, .thread = thread.name, .level = level, .name = frame.name};
            open.thread_id = static_cast<std::uint64_t>(thread.os_tid);
            open.is_waiting = level == 0 && thread.wait != OutsideWait::None;
            open.line = when(frame.line != 0, frame.line);
            open.kind = frame.is_python ? "python" : frame.is_interpreter ? "interpreter" : "native";
            tables.ranges.add(open);
        }
    }
    tables.processes.add(row);
    return result_of({}, tables);
}

}  // namespace marey
