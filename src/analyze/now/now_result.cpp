// now_result.cpp: the columns of what `marey now` reports.
#include <filesystem>

#include <marey/now.h>
#include <marey/results.h>

#include "analyze/result_keys.h"

namespace marey {
namespace now_columns {
namespace {
using enum ResultUnit;
using enum ResultShown;

constexpr std::string_view kStates[] = {"running", "finished", "exited", "killed", "ended"};

struct ProcessRow {
    const Trace& trace;
    const ProcessNow& now;
    const std::string& file;
    std::optional<std::uint64_t> bytes() const {
        std::error_code error;
        const std::uint64_t size = std::filesystem::file_size(file, error);
        return when(!error, size);
    }
    const ProcessInfo& info() const { return trace.processes()[now.process]; }
    std::string text(StringId id) const { return std::string(trace.string(id)); }
};

struct OpenRow {
    const Trace& trace;
    const ThreadNow& now;
    const OpenNow& it;
    std::size_t level;
    Row thread() const { return now.thread; }
    std::string name() const {
        return std::string(trace.string(trace.sites()[trace.ranges().site[it.range]].name));
    }
};

struct TaskRow {
    const Trace& trace;
    const ProcessNow& process;
    const TaskNow& it;
    std::optional<std::string> text(StringId id) const { return text_or_null(std::string(trace.string(id))); }
};

}  // namespace
}  // namespace now_columns

Result now_result(const Trace& trace, const std::string& file) {
    using namespace now_columns;

    ResultRows<ProcessRow> processes("now_processes", "The processes, and how their recordings ended");
    processes.columns({
        {"pid", [](auto& r) { return r.info().pid; }, "process id", "pid", Yes, None},
        {"rank", [](auto& r) { return when(r.info().node >= 0, r.info().node); }, "its rank", "rank", Used,
         None},
        {"host", [](auto& r) { return r.text(r.info().host); }, "name of its host"},
        {"program", [](auto& r) { return r.text(r.info().name); }, "path of its executable"},
        {"command_line", [](auto& r) { return r.text(r.info().command_line); }, "arguments", "command"},
        {"state", [](auto& r) { return std::string(kStates[static_cast<std::size_t>(r.now.state)]); },
         "running, finished, exited, killed, or ended: without closing its capture, nobody knows how",
         "state"},
        {"exit_code", [](auto& r) { return when(r.now.exit_code >= 0, r.now.exit_code); }, "its exit code",
         "", No, None},
        {"exit_signal", [](auto& r) { return when(r.now.exit_signal > 0, r.now.exit_signal); },
         "the signal that killed it", "", No, None},
        {"recorded_ns", [](auto& r) { return r.now.end_ns - r.trace.window().start_ns; },
         "time since the recording began", "recorded"},
        {"idle_ns", [](auto& r) { return when(r.now.last_ns > 0, r.now.end_ns - r.now.last_ns); },
         "time since a range ended", "last event"},
        {"file", [](auto& r) { return text_or_null(r.file); }, "its capture", "file", Name},
        {"bytes", [](auto& r) { return r.bytes(); }, "size of the capture", "size"},
        {"end_realtime_ns", [](auto& r) { return r.now.end_ns + r.info().realtime_offset_ns; },
         "now, or its last time, since 1970", "", No, None},
        {"other_threads", [](auto& r) { return r.now.other_threads; }, "threads without an open range"},
        {"in_flight", [](auto& r) { return r.now.in_flight; },
         "launches of device work after the newest that has ended and that its driver has reported"},
    });
    ResultRows<OpenRow> ranges("now_ranges", "The open ranges of each thread, innermost first");
    ranges.columns(
        {{"pid", [](auto& r) { return process_id(r.trace, r.trace.threads()[r.thread()].process); },
          "process id", "pid", Yes, None}});
    ranges.columns(thread_key<OpenRow>("thread"));
    ranges.columns({
        {"level", [](auto& r) { return r.level; }, "0: innermost", "level", Yes, None},
        {"open_ns", &OpenNow::open_ns, "for how long it has been open", "open"},
        {"usual_ns", &OpenNow::usual_ns,
         "median time of finished ranges with this name, in the newest part of the log", "usually"},
        {"is_waiting", &OpenNow::is_waiting, "a known wait: for events, locks, the network or the clock"},
        {"name", [](auto& r) { return r.name(); }, "name of the range", "name", Call},
    });
    ResultRows<TaskRow> tasks("now_tasks", "The tasks of event loops that wait, longest first");
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
    using DeviceRow = OfDevice<DeviceNow>;
    auto devices = device_rows<DeviceRow>("now_devices", "The devices, and their newest work");
    devices.columns({
        {"last", [](auto& r) { return std::string(r.trace.range_name(r->last)); }, "name of its newest work",
         "last", Call},
        {"idle_ns", [](auto& r) { return r->idle_ns; }, "time since that ended", "idle"},
    });
    const std::vector<ProcessNow> all = now(trace);
    for (const ProcessNow& process : all) {
        processes.add({trace, process, file});
        for (const TaskNow& task : process.tasks) tasks.add({trace, process, task});
        for (const DeviceNow& device : process.devices)
            devices.add({trace, process.process, device.device, device});
        for (const ThreadNow& thread : process.threads) {
            for (std::size_t level = 0; level < thread.ranges.size(); ++level)
                ranges.add({trace, thread, thread.ranges[level], level});
        }
    }
    return made_result({}, processes, ranges, tasks, devices);
}

}  // namespace marey
