// trace_outline_fixture.h: for tests: a trace as a few readable lines, and a consistency check of its tables.
#pragma once

#include <cstdint>
#include <string>

#include <marey/trace.h>

#include "trace/trace_data.h"

namespace marey::testing {

/// One line per track: `name: a 10-50 { b 12-20 c 20-30 } d 60-70`. Marks after the times: `<` began before
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

/// Problems as `code code=count ...`, without those that only report that the log was not closed.
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

/// The part of find_fault that is about instants, details, links and allocation reports.
inline std::string find_fault_beside_ranges(const Trace& trace) {
    const WindowInfo& window = trace.window();
    const auto is_outside = [&](std::int64_t time) { return time < window.start_ns || time > window.end_ns; };
    for (const std::int64_t time : trace.instants().time_ns) {
        if (is_outside(time)) return "an instant outside of the window";
    }
    Row last = kNoRow;
    for (const RangeDetail& detail : trace.range_details()) {
        if (detail.range == last) return "two details of a range";
        if (detail.sequence < -1) return "a negative sequence number";
        last = detail.range;
    }
    for (const LinkInfo& link : trace.links()) {
        if (link.from == link.to) return "a link refers to a missing range";
    }
    const MemoryColumns memory = trace.memory();
    for (Row row = 0; row < memory.size(); ++row) {
        if (is_outside(memory.time_ns[row])) return "an allocation report outside of the window";
        if (row == 0 || memory.thread[row] > memory.thread[row - 1]) continue;
        if (memory.thread[row] < memory.thread[row - 1] || memory.time_ns[row] < memory.time_ns[row - 1])
            return "allocation reports are not sorted";
    }
    return "";
}

/// Empty when the tables keep every promise of trace.h, as recorded traces do, else the broken one. Reads
/// every column.
inline std::string find_fault(const Trace& trace) {
    if (std::string damage = find_damage(trace.data()); !damage.empty()) return damage;
    const RangeColumns ranges = trace.ranges();
    const WindowInfo& window = trace.window();
    for (std::size_t t = 0; t < trace.tracks().size(); ++t) {
        const TrackInfo& track = trace.tracks()[t];
        if (track.range_count == 0) return "an empty track";
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            const std::string where = " at row " + std::to_string(row);
            const std::int64_t start = ranges.start_ns[row];
            const std::int64_t end = start + ranges.duration_ns[row];
            // For timed device work only the length is known.
            const bool may_outlast = track.device.type != DeviceType::Cpu;
            if (end > window.end_ns && !may_outlast) return "ends after the window" + where;
            if (trace.track_of(row) != t) return "track_of" + where;
            const std::int64_t clipped = trace.clipped_duration_ns(row);
            if (ranges.self_ns[row] < 0 || ranges.self_ns[row] > clipped) return "self time" + where;
            if ((ranges.flags[row] & (kUnfinished | kRemote)) == kUnfinished && end != window.end_ns)
                return "unfinished end" + where;
            if (((ranges.flags[row] & kAsync) != 0) != (track.kind == TrackKind::Async))
                return "async flag" + where;
            const Row parent = ranges.parent[row];
            if (parent != kNoRow) {
                if (parent < track.first_range) return "a parent on another track" + where;
                if (start < ranges.start_ns[parent]) return "starts before its parent" + where;
                if (end > ranges.start_ns[parent] + ranges.duration_ns[parent])
                    return "ends after its parent" + where;
            }
            // The row before, if it is not an ancestor, has ended: so have its ancestors up to our siblings.
            for (Row other = row == track.first_range ? kNoRow : row - 1; other != kNoRow && other != parent;
                 other = ranges.parent[other]) {
                if (ranges.start_ns[other] + ranges.duration_ns[other] > start)
                    return "overlaps a sibling" + where;
            }
        }
    }
    return find_fault_beside_ranges(trace);
}

}  // namespace marey::testing
