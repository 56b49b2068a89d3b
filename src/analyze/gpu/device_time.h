// device_time.h: which ranges launched device work, and how long that work took.
#pragma once

#include <unordered_map>

#include <marey/trace.h>

namespace marey {

/// Whether ranges of this site are work when they run on a device. User annotations on a device only span the
/// work they cover, so their time is never added to a sum.
bool is_device_work(const SiteInfo& site) noexcept;

/// Finds the device work to which the self time of a device range belongs.
class EnclosingWork {
  public:
    explicit EnclosingWork(const Trace& trace) : trace_(trace) {}
    /// The nearest enclosing range that is work, possibly `range` itself; kNoRow if there is none. Must be
    /// called with rows in ascending order; rows that were skipped are not considered as enclosing ranges.
    Row at(Row range);

  private:
    bool is_work(Row range) const noexcept {
        return is_device_work(trace_.sites()[trace_.ranges().site[range]]);
    }

    const Trace& trace_;
    std::unordered_map<Row, Row> around_;  ///< enclosing work of annotations
};

/// The nearest range enclosing a host call (or the call itself) that is not a device API call; kNoRow: none.
Row range_around_call(const RangeColumns& ranges, std::span<const SiteInfo> sites, Row call) noexcept;

struct LaunchedTime {
    Row owner;  ///< the range that launched it
    Row range;  ///< the device work
    std::int64_t duration_ns;
    bool is_timed = false;  ///< measured by events around the owner, including the ranges inside it
};

/// All launched work, once each. The owner is the nearest range enclosing the launching host call that is not
/// itself a device API call, or the call if there is no such range. Async ranges own nothing, and annotations
/// are not launched. In the order of the links.
std::vector<LaunchedTime> launched_times(const Trace& trace);

/// Device time per range of the trace. Empty if nothing was launched.
struct DeviceTimes {
    std::vector<std::int64_t>
        total;  ///< work launched by it and by the ranges inside it; for a timed range the measured time
    std::vector<std::int64_t> self;  ///< without the totals of the ranges inside it
};
DeviceTimes device_times(const Trace& trace, const std::vector<LaunchedTime>& launched);

}  // namespace marey
