// crossing_steps.cpp: finds the steps on async tracks, and the ranges that began and ended in them.
#include "analyze/events/crossing_steps.h"

#include <algorithm>

#include "analyze/track_place.h"
#include "analyze/tree/step_ranges.h"

namespace marey {

CrossingSteps::CrossingSteps(const Trace& trace) {
    for (const StepRange& step : find_steps(trace, "")) {
        const TrackInfo& own = trace.tracks()[trace.track_of(step.row)];
        if (own.kind != TrackKind::Async) continue;
        const auto is_of_thread = [&](const TrackInfo& track) {
            return track.thread == own.thread && track.kind == TrackKind::Thread;
        };
        const auto track = std::find_if(trace.tracks().begin(), trace.tracks().end(), is_of_thread);
        if (track != trace.tracks().end()) add(trace, step.row, *track);
    }
}

void CrossingSteps::add(const Trace& trace, Row step, const TrackInfo& track) {
    const RangeColumns ranges = trace.ranges();
    const auto end_of = [&](Row row) { return ranges.start_ns[row] + ranges.duration_ns[row]; };
    const Row last = track.first_range + track.range_count;
    const auto starts = ranges.start_ns.subspan(track.first_range, track.range_count);
    const auto first = std::lower_bound(starts.begin(), starts.end(), ranges.start_ns[step]);
    Row row = track.first_range + static_cast<Row>(first - starts.begin());
    Row around = row > track.first_range ? row - 1 : kNoRow;
    while (around != kNoRow && end_of(around) < end_of(step)) around = ranges.parent[around];
    steps.push_back(step);
    parent[step] = around;
    std::int64_t inside = 0;
    while (row < last && ranges.start_ns[row] < end_of(step)) {
        if (end_of(row) <= end_of(step)) {
            parent[row] = step;
            const std::int64_t duration = trace.clipped_duration_ns(row);
            inside += duration;
            if (ranges.parent[row] != kNoRow) more_self_ns.emplace_back(ranges.parent[row], duration);
        }
        const std::uint32_t depth = ranges.depth[row];
        if ((ranges.flags[row] & kUnfinished) != 0)
            open.insert(row++);
        else
            do {
                ++row;
            } while (row < last && ranges.depth[row] > depth);
    }
    more_self_ns.emplace_back(step, -inside);
    if (around != kNoRow) more_self_ns.emplace_back(around, -trace.clipped_duration_ns(step));
}

}  // namespace marey
