// trace_info.cpp: the properties of a trace as JSON.
#include <marey/export.h>

#include "json/json_writer.h"
#include "results/problems_json.h"

namespace marey {
namespace {

void write_window(JsonWriter& json, const Trace& trace) {
    const WindowInfo& window = trace.window();
    json.key("window").begin_object();
    json.member("session_id", window.session_id).member("session_name", window.session_name);
    json.member("start_ns", window.start_ns).member("end_ns", window.end_ns);
    json.member("duration_ns", window.end_ns - window.start_ns).member("finished", window.finished);
    json.member("max_bytes", window.max_bytes).member("policy", window.policy);
    json.member("ceiling_reached", window.size_limit_reached).member("log_bytes", window.log_bytes);
    json.end_object();
}

void write_processes(JsonWriter& json, const Trace& trace) {
    json.list("processes", trace.processes(), [&](const ProcessInfo& process) {
        json.member("pid", process.pid);
        if (process.node >= 0) json.member("node", process.node);
        json.member("executable", trace.string(process.name)).member("host", trace.string(process.host));
        json.member("command_line", trace.string(process.command_line));
        json.member("realtime_offset_ns", process.realtime_offset_ns);
    });
}

void write_threads(JsonWriter& json, const Trace& trace) {
    const std::vector<ThreadTotals> totals = thread_totals(trace);
    json.list("threads", trace.threads(), [&](const ThreadInfo& thread) {
        const ThreadTotals& total = totals[static_cast<std::size_t>(&thread - trace.threads().data())];
        json.member("thread", trace.string(thread.name)).member("thread_id", thread.id);
        json.member("os_tid", thread.os_tid).member("process", thread.process);
        json.member("birth_ns", thread.birth_ns).member("death_ns", thread.death_ns);
        json.member("ranges", total.ranges).member("async_ranges", total.async_ranges);
        json.member("instants", total.instants).member("counters", total.counters);
        json.member("dropped", thread.dropped).member("overwritten_chunks", thread.overwritten_chunks);
        json.member("resyncs", thread.resyncs).member("clamped", thread.clamped);
    });
}

}  // namespace

std::string trace_info_json(const Trace& trace) {
    std::string out;
    JsonWriter json(out, kJsonIndent);
    json.begin_object();
    json.member("ranges", static_cast<std::uint64_t>(trace.ranges().size()));
    json.member("instants", static_cast<std::uint64_t>(trace.instants().size()));
    json.member("counters", static_cast<std::uint64_t>(trace.counters().size()));
    json.member("allocation_reports", static_cast<std::uint64_t>(trace.memory().size()));
    json.member("links", static_cast<std::uint64_t>(trace.links().size()));
    write_window(json, trace);
    write_processes(json, trace);
    write_threads(json, trace);
    const ClockInfo& clock = trace.clock();
    json.key("clock").begin_object().member("source", clock.source);
    json.member("ticks_per_second", clock.ticks_per_second).member("pairs", clock.pairs);
    json.member("max_error_ns", clock.max_error_ns).member("extrapolated", clock.extrapolated).end_object();
    write_host_clocks(json.key("clocks"), trace);
    json.key("costs_ns").begin_object();
    for (const CostInfo& cost : trace.costs()) json.member(cost.kind, cost.ns);
    json.end_object();
    const Overhead overhead = estimate_overhead(trace);
    json.key("overhead");
    if (overhead.known) {
        json.begin_object().member("total_ns", overhead.total_ns);
        json.member("busiest_thread_share", overhead.busiest_share).end_object();
    } else {
        json.null();
    }
    write_problems(json, trace);
    json.end_object();
    out += '\n';
    return out;
}

}  // namespace marey
