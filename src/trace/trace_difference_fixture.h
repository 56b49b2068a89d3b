// trace_difference_fixture.h: for tests: whether two traces are the same in every field of every table.
#pragma once

#include <algorithm>
#include <bit>
#include <string>
#include <tuple>
#include <vector>

#include "trace/trace_data.h"

namespace marey::testing {

/// Compares values by their kind; numbers by their bits, so that a NaN equals itself.
inline bool is_same_value(const Argument& a, const Argument& b) {
    if (a.key != b.key || a.kind != b.kind || a.role != b.role || a.truncated != b.truncated ||
        a.left_out != b.left_out)
        return false;
    switch (a.kind) {
        case ValueKind::Bool:
            return a.boolean == b.boolean;
        case ValueKind::Int:
            return a.integer == b.integer;
        case ValueKind::Double:
            return std::bit_cast<std::uint64_t>(a.real) == std::bit_cast<std::uint64_t>(b.real);
        case ValueKind::String:
            return a.string == b.string;
        case ValueKind::List:
            return a.list.first == b.list.first && a.list.count == b.list.count;
        case ValueKind::Array:
            return a.array == b.array;
        case ValueKind::None:
            return true;
    }
    return false;
}

inline auto fields_of(const SiteInfo& s) {
    return std::tie(s.name, s.file, s.line, s.scope, s.overload, s.category, s.raw_name);
}
inline auto fields_of(const ProcessInfo& p) {
    return std::tie(p.pid, p.node, p.name, p.host, p.command_line, p.realtime_offset_ns);
}
inline auto fields_of(const ThreadInfo& t) {
    return std::tie(t.process, t.id, t.os_tid, t.name, t.birth_ns, t.death_ns, t.dropped,
                    t.overwritten_chunks, t.resyncs, t.clamped);
}
inline auto fields_of(const TrackInfo& t) {
    return std::tie(t.kind, t.thread, t.name, t.first_range, t.range_count, t.device, t.stream);
}
inline auto fields_of(const ArgumentSlice& s) {
    return std::tie(s.row, s.first, s.count);
}
inline auto fields_of(const ArrayInfo& a) {
    return std::tie(a.dtype, a.layout, a.is_defined, a.has_strides, a.device, a.first_extent, a.dimensions,
                    a.storage, a.storage_id, a.object, a.access);
}
inline auto fields_of(const RangeDetail& d) {
    return std::tie(d.range, d.sequence, d.forward_thread, d.id, d.call, d.part);
}
inline auto fields_of(const TaskInfo& t) {
    return std::tie(t.process, t.call, t.name);
}
inline auto fields_of(const LinkInfo& l) {
    return std::tie(l.from, l.to, l.kind, l.name);
}
inline auto fields_of(const MetadataInfo& m) {
    return std::tie(m.key, m.json);
}
inline auto fields_of(const ProblemInfo& p) {
    return std::tie(p.code, p.text, p.count);
}
inline auto fields_of(const CostInfo& c) {
    return std::tie(c.kind, c.ns);
}
inline auto fields_of(const ClockInfo& c) {
    return std::tie(c.source, c.ticks_per_second, c.pairs, c.max_error_ns, c.extrapolated);
}
inline auto fields_of(const WindowInfo& w) {
    return std::tie(w.session_name, w.session_id, w.start_ns, w.end_ns, w.finished, w.max_bytes, w.policy,
                    w.ceiling_reached, w.log_bytes);
}

/// The name of the first table or column that differs; empty when none does.
inline std::string find_difference(const TraceData& a, const TraceData& b) {
    std::string found;
    const auto columns = [&](const char* name, const auto& x, const auto& y) {
        if (found.empty() && x != y) found = name;
    };
    const auto rows = [&](const char* name, const auto& x, const auto& y) {
        const auto is_same = [](const auto& p, const auto& q) { return fields_of(p) == fields_of(q); };
        if (found.empty() && !std::equal(x.begin(), x.end(), y.begin(), y.end(), is_same)) found = name;
    };
    const auto values = [&](const char* name, const auto& x, const auto& y) {
        if (found.empty() && !std::equal(x.begin(), x.end(), y.begin(), y.end(), is_same_value)) found = name;
    };
    columns("strings", a.strings, b.strings);
    rows("sites", a.sites, b.sites);
    rows("processes", a.processes, b.processes);
    rows("threads", a.threads, b.threads);
    rows("tracks", a.tracks, b.tracks);
    columns("range_start_ns", a.range_start_ns, b.range_start_ns);
    columns("range_duration_ns", a.range_duration_ns, b.range_duration_ns);
    columns("range_self_ns", a.range_self_ns, b.range_self_ns);
    columns("range_site", a.range_site, b.range_site);
    columns("range_parent", a.range_parent, b.range_parent);
    columns("range_depth", a.range_depth, b.range_depth);
    columns("range_flags", a.range_flags, b.range_flags);
    columns("instant_time_ns", a.instant_time_ns, b.instant_time_ns);
    columns("instant_site", a.instant_site, b.instant_site);
    columns("instant_thread", a.instant_thread, b.instant_thread);
    columns("counter_time_ns", a.counter_time_ns, b.counter_time_ns);
    columns("counter_site", a.counter_site, b.counter_site);
    columns("counter_thread", a.counter_thread, b.counter_thread);
    const auto bits = [](const std::vector<double>& numbers) {
        std::vector<std::uint64_t> words;
        for (const double number : numbers) words.push_back(std::bit_cast<std::uint64_t>(number));
        return words;
    };
    columns("counter_value", bits(a.counter_value), bits(b.counter_value));
    values("arguments", a.arguments, b.arguments);
    values("list_items", a.list_items, b.list_items);
    rows("range_arguments", a.range_arguments, b.range_arguments);
    rows("instant_arguments", a.instant_arguments, b.instant_arguments);
    rows("arrays", a.arrays, b.arrays);
    columns("array_extents", a.array_extents, b.array_extents);
    rows("range_details", a.range_details, b.range_details);
    rows("links", a.links, b.links);
    rows("tasks", a.tasks, b.tasks);
    columns("memory_time_ns", a.memory_time_ns, b.memory_time_ns);
    columns("memory_thread", a.memory_thread, b.memory_thread);
    columns("memory_address", a.memory_address, b.memory_address);
    columns("memory_bytes", a.memory_bytes, b.memory_bytes);
    columns("memory_total_allocated", a.memory_total_allocated, b.memory_total_allocated);
    columns("memory_total_reserved", a.memory_total_reserved, b.memory_total_reserved);
    columns("memory_device", a.memory_device, b.memory_device);
    columns("memory_out_of_memory", a.memory_out_of_memory, b.memory_out_of_memory);
    rows("metadata", a.metadata, b.metadata);
    rows("problems", a.problems, b.problems);
    rows("costs", a.costs, b.costs);
    if (found.empty() && fields_of(a.clock) != fields_of(b.clock)) found = "clock";
    if (found.empty() && fields_of(a.window) != fields_of(b.window)) found = "window";
    return found;
}

inline bool equal(const TraceData& a, const TraceData& b) {
    return find_difference(a, b).empty();
}

}  // namespace marey::testing
