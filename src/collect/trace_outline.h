// trace_outline.h: for tests: a trace as a few readable lines, and a check that its tables hold together.
#pragma once

#include <cstdint>
#include <string>

#include <kymo/trace.h>

namespace kymo::testing {

/// One line per track: `name: a 10-50 { b 12-20 c 20-30 } d 60-70`. Marks behind the times: `<` began before
/// the window, `>` unfinished, `~` async, `?` its end was inferred.
inline std::string outline(const Trace& trace) {
    std::string text;
    const RangeColumns ranges = trace.ranges();
    for (const TrackInfo& track : trace.tracks()) {
        text += std::string(trace.string(track.name)) + ":";
        std::uint32_t open = 0;
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            for (; open > ranges.depth[row]; --open) text += " }";
            if (ranges.depth[row] > open) {
                text += " {";
                ++open;
            }
            text += " " + std::string(trace.range_name(row)) + " " + std::to_string(ranges.start_ns[row]) +
                    "-" + std::to_string(ranges.start_ns[row] + ranges.duration_ns[row]);
            if ((ranges.flags[row] & kBeganBefore) != 0) text += "<";
            if ((ranges.flags[row] & kUnfinished) != 0) text += ">";
            if ((ranges.flags[row] & kAsync) != 0) text += "~";
            if ((ranges.flags[row] & kEndInferred) != 0) text += "?";
        }
        for (; open > 0; --open) text += " }";
        text += "\n";
    }
    return text;
}

/// Problems as `code code=count ...`, without those that only say that the log was not closed.
inline std::string problem_codes(const Trace& trace) {
    std::string text;
    for (const ProblemInfo& problem : trace.problems()) {
        if (problem.code == "crashed") continue;
        if (!text.empty()) text += " ";
        text += problem.code;
        if (problem.count != 1) text += "=" + std::to_string(problem.count);
    }
    return text;
}

/// The part of find_fault that is about one value and what it leads to.
inline std::string find_value_fault(const Trace& trace, const Argument& value) {
    if (value.key >= trace.string_count()) return "unknown key";
    switch (value.kind) {
        case ValueKind::String:
            return value.string < trace.string_count() ? "" : "unknown string";
        case ValueKind::List:
            return value.list.first <= trace.list_items().size() &&
                           value.list.count <= trace.list_items().size() - value.list.first
                       ? ""
                       : "unknown list items";
        case ValueKind::Array: {
            if (value.array >= trace.arrays().size()) return "unknown array";
            const ArrayInfo& array = trace.arrays()[value.array];
            const std::size_t extents = std::size_t{array.dimensions} * (array.has_strides ? 2 : 1);
            return array.first_extent + extents <= trace.array_extents().size() ? "" : "unknown extents";
        }
        default:
            return "";
    }
}

/// The part of find_fault that is about details, links and allocation reports.
inline std::string find_fault_beside_ranges(const Trace& trace) {
    const std::size_t ranges = trace.ranges().size();
    Row last = kNoRow;
    for (const RangeDetail& detail : trace.range_details()) {
        if (detail.range >= ranges) return "a detail of no range";
        if (last != kNoRow && detail.range <= last) return "details are not sorted";
        if (detail.sequence < -1) return "a negative sequence number";
        last = detail.range;
    }
    last = 0;
    for (const LinkInfo& link : trace.links()) {
        if (link.from >= ranges || link.to >= ranges) return "a link of no range";
        if (link.from < last) return "links are not sorted";
        last = link.from;
    }
    const MemoryColumns memory = trace.memory();
    const std::size_t count = memory.size();
    if (memory.thread.size() != count || memory.address.size() != count || memory.bytes.size() != count ||
        memory.total_allocated.size() != count || memory.total_reserved.size() != count ||
        memory.device.size() != count || memory.out_of_memory.size() != count) {
        return "memory columns differ in length";
    }
    for (Row row = 0; row < count; ++row) {
        if (memory.thread[row] >= trace.threads().size()) return "an allocation report without a thread";
        if (memory.time_ns[row] < trace.window().start_ns || memory.time_ns[row] > trace.window().end_ns)
            return "an allocation report outside of the window";
        if (row == 0 || memory.thread[row] > memory.thread[row - 1]) continue;
        if (memory.thread[row] < memory.thread[row - 1] || memory.time_ns[row] < memory.time_ns[row - 1])
            return "allocation reports are not sorted";
    }
    return "";
}

/// Empty when every promise of trace.h about the tables holds, else which one does not. Touches every column.
inline std::string find_fault(const Trace& trace) {
    const RangeColumns ranges = trace.ranges();
    const std::size_t count = ranges.size();
    if (ranges.duration_ns.size() != count || ranges.self_ns.size() != count || ranges.site.size() != count ||
        ranges.parent.size() != count || ranges.depth.size() != count || ranges.flags.size() != count) {
        return "range columns differ in length";
    }
    const WindowInfo& window = trace.window();
    if (window.end_ns < window.start_ns) return "the window is backwards";
    Row next = 0;
    for (std::size_t t = 0; t < trace.tracks().size(); ++t) {
        const TrackInfo& track = trace.tracks()[t];
        if (track.first_range != next) return "tracks leave a gap";
        if (track.range_count == 0) return "an empty track";
        if (track.thread >= trace.threads().size()) return "a track without a thread";
        if (track.name >= trace.string_count()) return "a track with an unknown name";
        next += track.range_count;
        for (Row row = track.first_range; row < next; ++row) {
            const std::string where = " at row " + std::to_string(row);
            const std::int64_t start = ranges.start_ns[row];
            const std::int64_t end = start + ranges.duration_ns[row];
            if (ranges.duration_ns[row] < 0) return "negative duration" + where;
            if (end > window.end_ns) return "ends after the window" + where;
            if (ranges.site[row] >= trace.sites().size()) return "unknown site" + where;
            if (trace.track_of(row) != t) return "track_of" + where;
            const std::int64_t clipped = trace.clipped_duration_ns(row);
            if (ranges.self_ns[row] < 0 || ranges.self_ns[row] > clipped) return "self time" + where;
            if ((ranges.flags[row] & (kUnfinished | kRemote)) == kUnfinished && end != window.end_ns)
                return "unfinished end" + where;
            if (((ranges.flags[row] & kAsync) != 0) != (track.kind == TrackKind::Async))
                return "async flag" + where;
            const Row parent = ranges.parent[row];
            if (parent == kNoRow) {
                if (ranges.depth[row] != 0) return "a root with a depth" + where;
            } else {
                if (parent >= row || parent < track.first_range) return "parent" + where;
                if (ranges.depth[row] != ranges.depth[parent] + 1) return "depth" + where;
                if (start < ranges.start_ns[parent]) return "starts before its parent" + where;
                if (end > ranges.start_ns[parent] + ranges.duration_ns[parent])
                    return "ends after its parent" + where;
            }
            if (row > track.first_range && ranges.depth[row] > ranges.depth[row - 1] + 1)
                return "order" + where;
            // The row before that is no ancestor has ended: its ancestors up to our siblings have.
            for (Row other = row == track.first_range ? kNoRow : row - 1; other != kNoRow && other != parent;
                 other = ranges.parent[other]) {
                if (ranges.start_ns[other] + ranges.duration_ns[other] > start)
                    return "overlaps a sibling" + where;
            }
            for (const Argument& argument : trace.range_arguments(row)) {
                if (const std::string fault = find_value_fault(trace, argument); !fault.empty())
                    return fault + where;
            }
        }
    }
    if (next != count) return "rows without a track";
    const InstantColumns instants = trace.instants();
    for (Row row = 0; row < instants.size(); ++row) {
        if (instants.site[row] >= trace.sites().size()) return "an instant with an unknown site";
        if (instants.thread[row] >= trace.threads().size()) return "an instant without a thread";
        if (instants.time_ns[row] < window.start_ns || instants.time_ns[row] > window.end_ns) {
            return "an instant outside of the window";
        }
        for (const Argument& argument : trace.instant_arguments(row)) {
            if (const std::string fault = find_value_fault(trace, argument); !fault.empty())
                return fault + " of an instant";
        }
    }
    const CounterColumns counters = trace.counters();
    for (Row row = 0; row < counters.size(); ++row) {
        if (counters.site[row] >= trace.sites().size()) return "a counter with an unknown site";
        if (counters.thread[row] >= trace.threads().size()) return "a counter without a thread";
    }
    for (const auto& argument : trace.list_items()) {
        if (const std::string fault = find_value_fault(trace, argument); !fault.empty())
            return fault + " in a list";
    }
    for (const SiteInfo& site : trace.sites()) {
        if (site.name >= trace.string_count() || site.file >= trace.string_count()) return "a site's strings";
    }
    Row last_from = 0;
    for (const LinkInfo& link : trace.links()) {
        if (link.from >= count || link.to >= count || link.from == link.to) return "a link leads nowhere";
        if (link.from < last_from) return "links are not sorted";
        last_from = link.from;
    }
    const MemoryColumns memory = trace.memory();
    for (Row row = 0; row < memory.size(); ++row) {
        if (memory.thread[row] >= trace.threads().size()) return "an allocation without a thread";
    }
    for (const ThreadInfo& thread : trace.threads()) {
        if (thread.process >= trace.processes().size()) return "a thread without a process";
        if (thread.name >= trace.string_count()) return "a thread's name";
    }
    return find_fault_beside_ranges(trace);
}

}  // namespace kymo::testing
