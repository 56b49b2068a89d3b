// innermost_ranges.h: the innermost open range of a thread at a given time.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include <marey/trace.h>

namespace marey {

/// The innermost open range of one track. Fast for ascending times: starts ascend along a track, so ranges
/// between two times are skipped, and each ended range is passed only once.
class TrackCursor {
  public:
    TrackCursor(const TrackInfo& track, const RangeColumns& ranges) noexcept;
    /// kNoRow: no range is open.
    Row innermost_at(std::int64_t time_ns) noexcept;

  private:
    Row first_after(std::int64_t time_ns) const noexcept;
    bool is_open(Row range, std::int64_t time_ns) const noexcept;

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
    explicit InnermostRanges(const Trace& trace);
    InnermostRanges(const InnermostRanges&) = delete;
    InnermostRanges& operator=(const InnermostRanges&) = delete;

    /// `thread` is a row of the thread table. kNoRow: no range is open.
    Row at(Row thread, std::int64_t time_ns) noexcept;

  private:
    RangeColumns ranges_;
    std::vector<std::vector<TrackCursor>> tracks_;  ///< per thread
};

}  // namespace marey
