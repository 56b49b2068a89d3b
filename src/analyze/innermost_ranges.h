// innermost_ranges.h: what a thread was doing at a time.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include <marey/trace.h>

namespace marey {

/// The innermost open range of one track. Cheap for times that do not fall: starts never fall along a track,
/// so that ranges between two times are jumped over, and a range that has ended is climbed past once.
class TrackCursor {
  public:
    TrackCursor(const TrackInfo& track, const RangeColumns& ranges) noexcept;
    /// kNoRow: none is open.
    Row innermost_at(std::int64_t time_ns) noexcept;

  private:
    Row first_after(std::int64_t time_ns) const noexcept;
    bool is_open(Row range, std::int64_t time_ns) const noexcept;

    const RangeColumns* ranges_;
    Row first_, end_;
    Row next_;                ///< all before it have begun
    Row innermost_ = kNoRow;  ///< or one inside it that has ended
    std::int64_t last_ns_ = std::numeric_limits<std::int64_t>::min();
};

/// The innermost range of a thread that is open at a time: of all that are, on whatever track that holds its
/// calls, the one that began last. A range is open from its start until before its end, one without length at
/// its start. Async ranges do not count. Linear, in all, for times that do not fall on each thread.
class InnermostRanges {
  public:
    explicit InnermostRanges(const Trace& trace);
    InnermostRanges(const InnermostRanges&) = delete;
    InnermostRanges& operator=(const InnermostRanges&) = delete;

    /// `thread` is a row of the thread table. kNoRow: none is open.
    Row at(Row thread, std::int64_t time_ns) noexcept;

  private:
    RangeColumns ranges_;
    std::vector<std::vector<TrackCursor>> tracks_;  ///< per thread
};

}  // namespace marey
