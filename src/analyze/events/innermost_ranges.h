// innermost_ranges.h: the innermost open range of a thread at a given time.
#pragma once

#include <algorithm>
#include <limits>

#include <marey/trace.h>

#include "analyze/track_place.h"

namespace marey {

/// The innermost open range of one track. Fast for ascending times: starts ascend along a track, so ranges
/// between two times are skipped, and each ended range is passed only once.
class TrackCursor {
  public:
    TrackCursor(const TrackInfo& track, const RangeColumns& ranges) noexcept
        : ranges_(&ranges),
          first_(track.first_range),
          end_(track.first_range + track.range_count),
          next_(track.first_range) {}
    /// kNoRow: no range is open.
    Row innermost_at(std::int64_t time_ns) noexcept {
        if (time_ns < last_ns_) {
            next_ = first_;
            innermost_ = kNoRow;
        }
        last_ns_ = time_ns;
        const Row next = first_after(time_ns);
        if (next != next_) {
            next_ = next;
            innermost_ = next - 1;
        }
        while (innermost_ != kNoRow && !is_open(innermost_, time_ns))
            innermost_ = ranges_->depth[innermost_] == 0 ? kNoRow : ranges_->parent[innermost_];
        return innermost_;
    }

  private:
    /// The first range that starts after `time_ns`, found by a galloping search from the previous position.
    Row first_after(std::int64_t time_ns) const noexcept {
        const std::span<const std::int64_t> starts = ranges_->start_ns.subspan(next_, end_ - next_);
        std::size_t low = 0, step = 1;
        while (step < starts.size() - low && starts[low + step] <= time_ns) {
            low += step;
            step *= 2;
        }
        const std::span<const std::int64_t> near = starts.subspan(low, std::min(step, starts.size() - low));
        const auto after = std::upper_bound(near.begin(), near.end(), time_ns);
        return next_ + static_cast<Row>(low + static_cast<std::size_t>(after - near.begin()));
    }
    /// `range` has started.
    bool is_open(Row range, std::int64_t time_ns) const noexcept {
        const std::int64_t start = ranges_->start_ns[range];
        // Unsigned arithmetic, because the difference of two times may overflow.
        return start == time_ns || static_cast<std::uint64_t>(time_ns) - static_cast<std::uint64_t>(start) <
                                       static_cast<std::uint64_t>(ranges_->duration_ns[range]);
    }

    const RangeColumns* ranges_;
    Row first_, end_;
    Row next_;                ///< all ranges before it have started
    Row innermost_ = kNoRow;  ///< or a range inside it that has ended
    std::int64_t last_ns_ = std::numeric_limits<std::int64_t>::min();
};

/// The innermost range of a thread that is open at a time: of all open ranges on the thread's call tracks,
/// the one that started last. A range is open from its start to just before its end; a zero-length range is
/// open at its start. Async ranges are ignored. Linear time overall if the times of each thread ascend.
class InnermostRanges {
  public:
    explicit InnermostRanges(const Trace& trace) : ranges_(trace.ranges()), tracks_(trace.threads().size()) {
        for (const TrackInfo& track : trace.tracks()) {
            if (place_of(track) == Place::Host && track.range_count > 0)
                tracks_[track.thread].emplace_back(track, ranges_);
        }
    }
    InnermostRanges(const InnermostRanges&) = delete;
    InnermostRanges& operator=(const InnermostRanges&) = delete;

    /// `thread` is a row of the thread table. kNoRow: no range is open.
    Row at(Row thread, std::int64_t time_ns) noexcept {
        Row innermost = kNoRow;
        for (TrackCursor& track : tracks_[thread]) {
            const Row range = track.innermost_at(time_ns);
            if (range == kNoRow) continue;
            // A child's row is larger than its parent's, so with equal starts the larger row is the inner
            // range.
            if (innermost == kNoRow || ranges_.start_ns[range] > ranges_.start_ns[innermost] ||
                (ranges_.start_ns[range] == ranges_.start_ns[innermost] && range > innermost))
                innermost = range;
        }
        return innermost;
    }

  private:
    RangeColumns ranges_;
    std::vector<std::vector<TrackCursor>> tracks_;  ///< per thread
};

}  // namespace marey
