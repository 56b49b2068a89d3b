// trace_assembler_links.cpp: the arrows of a trace under construction, and the ranges at their ends.
#include <algorithm>
#include <tuple>
#include <vector>

#include "trace/trace_assembler.h"

namespace marey {

/// The innermost range of a track that is open at a time, including one that ends just then. kNoRow: none.
Row TraceAssembler::innermost_at(const TrackInfo& track, std::int64_t time_ns) const {
    const auto begin = data_->range_start_ns.begin() + track.first_range;
    const auto found = std::upper_bound(begin, begin + track.range_count, time_ns);
    if (found == begin) return kNoRow;
    auto row = static_cast<Row>(found - data_->range_start_ns.begin() - 1);
    // A range that ends where the next one starts comes right before it; both are open, and the next one is
    // preferred.
    while (row != kNoRow && data_->range_start_ns[row] + data_->range_duration_ns[row] < time_ns) {
        const Row parent = data_->range_parent[row];
        row = parent != kNoRow && parent >= track.first_range ? parent : kNoRow;
    }
    return row;
}

Row TraceAssembler::next_at(const TrackInfo& track, std::int64_t time_ns) const {
    const auto begin = data_->range_start_ns.begin() + track.first_range;
    const auto found = std::lower_bound(begin, begin + track.range_count, time_ns);
    return found == begin + track.range_count ? kNoRow
                                              : static_cast<Row>(found - data_->range_start_ns.begin());
}

Row TraceAssembler::bind(const LinkEnd& end) const {
    if (end.range != LinkEnd::kNoRange) return row_of_[end.range];
    const LaneTracks& tracks = lane_tracks_[end.lane];
    Row best = kNoRow;
    for (std::uint32_t i = tracks.first; i < tracks.first + tracks.count; ++i) {
        const TrackInfo& track = data_->tracks[i];
        const Row row = end.is_next ? next_at(track, end.time_ns) : innermost_at(track, end.time_ns);
        if (row == kNoRow) continue;
        const bool is_better =
            best == kNoRow || (end.is_next ? data_->range_start_ns[row] < data_->range_start_ns[best]
                                           : data_->range_start_ns[row] > data_->range_start_ns[best]);
        if (is_better) best = row;
    }
    return best;
}

void TraceAssembler::bind_links() {
    for (LinkInfo& link : data_->links) {
        link.from = row_of_[link.from];
        link.to = row_of_[link.to];
    }
    std::uint64_t loose = 0;
    for (const LooseLink& link : loose_links_) {
        const Row from = bind(link.from);
        const Row to = bind(link.to);
        if (from == kNoRow || to == kNoRow) {
            ++loose;
        } else {
            data_->links.push_back({from, to, link.kind, link.name});
        }
    }
    if (loose > 0) add_problem("loose_arrow", "Arrows begin or end where there is no range.", loose);
}

void TraceAssembler::place_links() {
    const auto key = [](const LinkInfo& link) {
        return std::tuple(link.from, link.to, link.kind, link.name);
    };
    std::vector<LinkInfo>& links = data_->links;
    std::sort(links.begin(), links.end(),
              [&](const LinkInfo& a, const LinkInfo& b) { return key(a) < key(b); });
    const auto is_same = [&](const LinkInfo& a, const LinkInfo& b) { return key(a) == key(b); };
    links.erase(std::unique(links.begin(), links.end(), is_same), links.end());
}

}  // namespace marey
