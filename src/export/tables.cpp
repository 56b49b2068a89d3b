// tables.cpp: summaries and what a trace is about, as JSON and CSV text.
#include <charconv>

#include <kymo/export.h>

#include "base/json_writer.h"
#include "export/csv_field.h"

namespace kymo {
namespace {

constexpr int kIndent = 2;

/// Average of integers: one decimal says all there is to say, and the same value gives the same text
/// everywhere.
std::string one_decimal(double value) {
    char text[64];
    const auto result = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, 1);
    return std::string(text, result.ptr);
}

void write_thread_identity(JsonWriter& json, const Trace& trace, Row row) {
    const ThreadInfo& thread = trace.threads()[row];
    json.member("thread", trace.string(thread.name)).member("thread_id", thread.id);
    json.member("os_tid", thread.os_tid);
}

void write_problems(JsonWriter& json, const Trace& trace) {
    json.key("problems").begin_array();
    for (const ProblemInfo& problem : trace.problems()) {
        json.begin_object().member("code", problem.code).member("text", problem.text);
        json.member("count", problem.count).end_object();
    }
    json.end_array();
}

void write_window(JsonWriter& json, const Trace& trace) {
    const WindowInfo& window = trace.window();
    json.key("window").begin_object();
    json.member("session_id", window.session_id).member("session_name", window.session_name);
    json.member("start_ns", window.start_ns).member("end_ns", window.end_ns);
    json.member("duration_ns", window.end_ns - window.start_ns).member("finished", window.finished);
    json.member("max_bytes", window.max_bytes).member("policy", window.policy);
    json.member("ceiling_reached", window.ceiling_reached).member("log_bytes", window.log_bytes);
    json.end_object();
}

void write_processes(JsonWriter& json, const Trace& trace) {
    json.key("processes").begin_array();
    for (const ProcessInfo& process : trace.processes()) {
        json.begin_object().member("pid", process.pid);
        if (process.node >= 0) json.member("node", process.node);
        json.member("executable", trace.string(process.name)).member("host", trace.string(process.host));
        json.member("command_line", trace.string(process.command_line));
        json.member("realtime_offset_ns", process.realtime_offset_ns).end_object();
    }
    json.end_array();
}

void write_threads(JsonWriter& json, const Trace& trace) {
    const std::vector<ThreadTotals> totals = thread_totals(trace);
    json.key("threads").begin_array();
    for (Row row = 0; row < trace.threads().size(); ++row) {
        const ThreadInfo& thread = trace.threads()[row];
        json.begin_object();
        write_thread_identity(json, trace, row);
        json.member("process", thread.process).member("birth_ns", thread.birth_ns);
        json.member("death_ns", thread.death_ns);
        json.member("ranges", totals[row].ranges).member("async_ranges", totals[row].async_ranges);
        json.member("instants", totals[row].instants).member("counters", totals[row].counters);
        json.member("dropped", thread.dropped).member("overwritten_chunks", thread.overwritten_chunks);
        json.member("resyncs", thread.resyncs).member("clamped", thread.clamped).end_object();
    }
    json.end_array();
}

}  // namespace

std::string summary_json(const Trace& trace, const Summary& summary) {
    std::string out;
    JsonWriter json(out, kIndent);
    json.begin_object();
    json.member("window_ns", summary.window_ns).member("recorded_ns", summary.recorded_ns);
    json.member("range_count", summary.range_count);
    json.key("rows").begin_array();
    for (const SummaryRow& row : summary.rows) {
        json.begin_object().member("name", row.name);
        if (summary.by_thread) write_thread_identity(json, trace, row.thread);
        json.member("count", row.count).member("unfinished", row.unfinished);
        json.member("async", row.async);
        json.member("self_ns", row.self_ns).member("total_ns", row.total_ns);
        json.member("average_ns", row.average_ns()).member("min_ns", row.min_ns);
        if (summary.percentiles) json.member("p50_ns", row.p50_ns).member("p99_ns", row.p99_ns);
        json.member("max_ns", row.max_ns).end_object();
    }
    json.end_array();
    write_problems(json, trace);
    json.end_object();
    out += '\n';
    return out;
}

std::string summary_csv(const Trace& trace, const Summary& summary) {
    std::string out = summary.by_thread ? "name,thread,thread_id," : "name,";
    out += "self_ns,total_ns,average_ns,min_ns,";
    if (summary.percentiles) out += "p50_ns,p99_ns,";
    out += "max_ns,count,unfinished,async\n";
    for (const SummaryRow& row : summary.rows) {
        append_csv_field(out, row.name);
        if (summary.by_thread) {
            const ThreadInfo& thread = trace.threads()[row.thread];
            out += ',';
            append_csv_field(out, trace.string(thread.name));
            out += ',' + std::to_string(thread.id);
        }
        auto number = [&](auto value) { out += ',' + std::to_string(value); };
        number(row.self_ns);
        number(row.total_ns);
        out += ',' + one_decimal(row.average_ns());
        number(row.min_ns);
        if (summary.percentiles) {
            number(row.p50_ns);
            number(row.p99_ns);
        }
        number(row.max_ns);
        number(row.count);
        number(row.unfinished);
        number(row.async);
        out += '\n';
    }
    return out;
}

std::string trace_info_json(const Trace& trace) {
    std::string out;
    JsonWriter json(out, kIndent);
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

}  // namespace kymo
