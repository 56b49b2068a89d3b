// info_result.cpp: the columns of what `marey info` reports.
#include <marey/results.h>

#include "analyze/result_keys.h"

namespace marey {
namespace info_columns {
namespace {
using enum ResultUnit;
using enum ResultShown;

struct ThreadRow {
    const Trace& trace;
    Row row;
    const ThreadTotals& totals;
    const ThreadInfo& it;
};

}  // namespace
}  // namespace info_columns

Result info_result(const Trace& trace) {
    using namespace info_columns;

    ResultRows<Trace> events("", "The numbers of events", true);
    events.columns({
        {"ranges", [](auto& r) { return r.ranges().size(); }, "ranges"},
        {"instants", [](auto& r) { return r.instants().size(); }, "instants"},
        {"counters", [](auto& r) { return r.counters().size(); }, "samples of counters"},
        {"allocation_reports", [](auto& r) { return r.memory().size(); }, "allocations and frees"},
        {"links", [](auto& r) { return r.links().size(); }, "links between ranges"},
    });
    events.add(trace);
    ResultRows<WindowInfo> window("window", "The session that the trace shows", true);
    window.columns({
        {"session_id", &WindowInfo::session_id, "its number in the capture", "", No, None},
        {"session_name", &WindowInfo::session_name, "its name"},
        {"start_ns", &WindowInfo::start_ns, "its start", "", No, Time},
        {"end_ns", &WindowInfo::end_ns, "its end", "", No, Time},
        {"duration_ns", [](auto& r) { return r.end_ns - r.start_ns; }, "its length"},
        {"finished", &WindowInfo::finished, "false after a crash, and for a snapshot"},
        {"max_bytes", &WindowInfo::max_bytes, "the limit on its size"},
        {"policy", &WindowInfo::policy, "at the limit: stop, drop or ring"},
        {"size_limit_reached", &WindowInfo::size_limit_reached, "whether it reached that limit"},
        {"log_bytes", &WindowInfo::log_bytes, "bytes of log records read"},
    });
    window.add(trace.window());
    ResultRows<OfTrace<ProcessInfo>> processes("processes", "The processes");
    processes.columns({
        {"pid", &ProcessInfo::pid, "process id", "", No, None},
        {"node", [](auto& r) { return when(r.it.node >= 0, r.it.node); }, "its rank", "", No, None},
        {"executable", [](auto& r) { return r.text(r.it.name); }, "path of its executable"},
        {"host", [](auto& r) { return r.text(r.it.host); }, "name of its host"},
        {"command_line", [](auto& r) { return r.text(r.it.command_line); }, "arguments, which end with NUL"},
        {"realtime_offset_ns", &ProcessInfo::realtime_offset_ns, "time since 1970 minus time of the trace"},
    });
    for (const ProcessInfo& process : trace.processes()) processes.add({trace, process});
    ResultRows<ThreadRow> threads("threads", "The threads, and the numbers of their events");
    threads.columns({
        {"thread", [](auto& r) { return thread_name(r.trace, r.row); }, "name of the thread", "thread", Name},
        {"thread_id", &ThreadInfo::id, "its number in the process", "id", Yes, None},
        {"os_tid", &ThreadInfo::os_tid, "its id in the operating system", "os tid", Yes, None},
        {"process", &ThreadInfo::process, "row of its process", "", No, None},
        {"birth_ns", &ThreadInfo::birth_ns, "time of its first event", "", No, Time},
        {"death_ns", &ThreadInfo::death_ns, "when it ended", "", No, Time},
        {"ranges", [](auto& r) { return r.totals.ranges; }, "ranges, async ones too", "ranges"},
        {"async_ranges", [](auto& r) { return r.totals.async_ranges; }, "async ranges", "async"},
        {"instants", [](auto& r) { return r.totals.instants; }, "instants", "instants"},
        {"counters", [](auto& r) { return r.totals.counters; }, "samples of counters", "counters"},
        {"dropped", &ThreadInfo::dropped, "events for which there was no room", "dropped"},
        {"overwritten_chunks", &ThreadInfo::overwritten_chunks, "parts of its log that newer events replaced",
         "overwritten"},
        {"resyncs", &ThreadInfo::resyncs, "damaged places in its log", "resyncs"},
        {"clamped", &ThreadInfo::clamped, "events whose times were corrected"},
    });
    const std::vector<ThreadTotals> totals = thread_totals(trace);
    for (Row row = 0; row < totals.size(); ++row)
        threads.add({trace, row, totals[row], trace.threads()[row]});
    ResultRows<ClockInfo> clock("clock", "The clock of the recording", true);
    clock.columns({
        {"source", &ClockInfo::source, "such as tsc"},
        {"ticks_per_second", &ClockInfo::ticks_per_second, "its frequency"},
        {"pairs", &ClockInfo::pairs, "pairs of times that were used to convert ticks"},
        {"max_error_ns", &ClockInfo::max_error_ns, "largest error of a time"},
        {"extrapolated", &ClockInfo::extrapolated, "whether the end is after the last pair"},
    });
    clock.add(trace.clock());
    auto clocks = clocks_table(trace);
    ResultRows<Trace> costs("costs_ns", "Nanoseconds to record one event, by the kind of event", true);
    for (const CostInfo& cost : trace.costs())
        costs.columns({{cost.kind, [ns = cost.ns](auto&) { return ns; }, "one event of this kind"}});
    costs.add(trace);
    ResultRows<Overhead> overhead("overhead", "The time that recording took, if its costs are known", true);
    overhead.columns({
        {"total_ns", &Overhead::total_ns, "on all threads"},
        {"busiest_thread_share", &Overhead::busiest_share,
         "its largest share of the window's time on a thread", "", No, Share},
    });
    if (const Overhead estimated = estimate_overhead(trace); estimated.known) overhead.add(estimated);
    auto problems = problems_table(trace.problems());
    return made_result(trace, events, window, processes, threads, clock, clocks, costs, overhead, problems);
}

}  // namespace marey
