// result_keys.h: the columns that rows of several results share: threads, devices and their processes.
#pragma once

#include <optional>
#include <utility>

#include <marey/device.h>
#include <marey/host_clocks.h>
#include <marey/trace.h>

#include "results/result_rows.h"

namespace marey {

template <class T>
std::optional<T> when(bool is_known, T value) {
    return is_known ? std::optional<T>(std::move(value)) : std::nullopt;
}
/// The error of a host's clock.
inline std::optional<std::int64_t> known_error(std::int64_t error_ns) {
    return when(error_ns != kUnknownClockError, error_ns);
}
inline std::optional<std::string> text_or_null(const std::string& text) {
    return when(!text.empty(), text);
}

inline std::optional<double> share_of(std::int64_t part, std::int64_t whole) {
    return when(whole > 0, whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0);
}

inline std::optional<std::string> thread_name(const Trace& trace, Row thread) {
    if (thread >= trace.threads().size()) return std::nullopt;
    const ThreadInfo& info = trace.threads()[thread];
    const std::string_view name = trace.string(info.name);
    return name.empty() ? "thread " + std::to_string(info.id) : std::string(name);
}
inline std::optional<std::uint64_t> thread_id(const Trace& trace, Row thread) {
    return when(thread < trace.threads().size(),
                thread < trace.threads().size() ? std::uint64_t{trace.threads()[thread].id} : 0);
}
/// The columns thread and thread_id of rows with the members `trace` and thread().
template <class Row>
std::vector<RowColumn<Row>> thread_key(const char* heading = "") {
    return {
        {"thread", [](auto& r) { return thread_name(r.trace, r.thread()); }, "name of the thread", heading},
        {"thread_id", [](auto& r) { return thread_id(r.trace, r.thread()); }, "id of the thread", "",
         ResultShown::No, ResultUnit::None},
    };
}

inline std::optional<std::int64_t> process_id(const Trace& trace, Row process) {
    if (process >= trace.processes().size()) return std::nullopt;
    return trace.processes()[process].pid;
}
/// A table with the window of a trace; its row is the trace.
inline ResultRows<Trace> window_table(const char* name) {
    ResultRows<Trace> table(name, "The window of the trace", true);
    table.columns({
        {"window_start_ns", [](auto& r) { return r.window().start_ns; }, "start", "", ResultShown::No,
         ResultUnit::Time},
        {"window_end_ns", [](auto& r) { return r.window().end_ns; }, "end", "", ResultShown::No,
         ResultUnit::Time},
    });
    return table;
}

inline ResultRows<ProblemInfo> problems_table(std::span<const ProblemInfo> problems) {
    ResultRows<ProblemInfo> table("problems",
                                  "Losses, damage and limits that readers of the trace should be aware of");
    table.columns({
        {"code", &ProblemInfo::code, "short and stable name", "code"},
        {"text", &ProblemInfo::text, "the problem in one sentence", "text", ResultShown::Name},
        {"count", &ProblemInfo::count, "how often", "count"},
    });
    for (const ProblemInfo& problem : problems) table.add(problem);
    return table;
}

/// A row of a table of a trace.
template <class T>
struct OfTrace {
    const Trace& trace;
    const T& it;
    std::string text(StringId id) const { return std::string(trace.string(id)); }
};

/// The clocks of the hosts.
inline ResultRows<OfTrace<HostClockInfo>> clocks_table(const Trace& trace) {
    ResultRows<OfTrace<HostClockInfo>> table("clocks", "The clocks of the hosts, if there are several");
    table.columns({
        {"host", [](auto& r) { return r.text(r.it.host); }, "name of the host"},
        {"reference", [](auto& r) { return r.text(r.it.reference); },
         "the host whose clock the times are of"},
        {"offset_ns", &HostClockInfo::offset_ns, "was added to its times, at the start of the window"},
        {"rate", &HostClockInfo::rate, "against the reference, minus 1", "", ResultShown::No,
         ResultUnit::None},
        {"error_ns", [](auto& r) { return known_error(r.it.error_ns); }, "largest error of its times"},
        {"evidence", [](auto& r) { return r.text(r.it.evidence); }, "what the fit used"},
        {"method", [](auto& r) { return r.text(r.it.method); },
         "reference, exchange, message, collective, wall_clock or none"},
    });
    for (const HostClockInfo& clock : trace.host_clocks()) table.add({trace, clock});
    return table;
}

/// A row about a device of a process.
template <class T>
struct OfDevice {
    const T* operator->() const { return &it; }

    const Trace& trace;
    Row process;
    Device device;
    const T& it;
};
/// The columns pid, device and device_index.
template <class Row>
std::vector<RowColumn<Row>> device_key() {
    return {
        {"pid", [](auto& r) { return process_id(r.trace, r.process); }, "process id", "", ResultShown::No,
         ResultUnit::None},
        {"device", [](auto& r) { return std::string(device_type_name(r.device.type)); },
         "type of the device"},
        {"device_index", [](auto& r) { return when(r.device.index >= 0, r.device.index); },
         "number of the device", "", ResultShown::No, ResultUnit::None},
    };
}

/// A table of such rows, which starts with these columns.
template <class Row>
ResultRows<Row> device_rows(std::string name, std::string description) {
    ResultRows<Row> table(std::move(name), std::move(description));
    table.columns(device_key<Row>());
    return table;
}

}  // namespace marey
