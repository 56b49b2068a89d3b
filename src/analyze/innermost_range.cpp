// innermost_range.cpp: which range a thread was in at a time.
#include "analyze/innermost_range.h"

#include <algorithm>

#include "analyze/path_tree.h"

namespace kymo {

InnermostRange::InnermostRange(const Trace& trace) : trace_(trace), tracks_(trace.threads().size()) {
    for (Row track = 0; track < trace.tracks().size(); ++track) {
        const TrackInfo& info = trace.tracks()[track];
        if (place_of(info) == Place::Host) tracks_[info.thread].push_back(track);
    }
}

Row InnermostRange::at(Row thread, std::int64_t time_ns) const {
    const RangeColumns ranges = trace_.ranges();
    Row best = kNoRow;
    for (const Row track : tracks_[thread]) {
        const Row row = on_track(trace_.tracks()[track], time_ns);
        if (row != kNoRow && (best == kNoRow || ranges.start_ns[row] >= ranges.start_ns[best])) best = row;
    }
    return best;
}

Row InnermostRange::on_track(const TrackInfo& track, std::int64_t time_ns) const {
    const RangeColumns ranges = trace_.ranges();
    const auto starts = ranges.start_ns.subspan(track.first_range, track.range_count);
    const auto after = std::upper_bound(starts.begin(), starts.end(), time_ns);
    if (after == starts.begin()) return kNoRow;
    // What holds the time and began before the last one that began by then, is around that one.
    Row row = track.first_range + static_cast<Row>(after - starts.begin() - 1);
    while (row >= track.first_range && row != kNoRow &&
           ranges.start_ns[row] + ranges.duration_ns[row] <= time_ns)
        row = ranges.depth[row] == 0 ? kNoRow : ranges.parent[row];
    return row;
}

}  // namespace kymo
