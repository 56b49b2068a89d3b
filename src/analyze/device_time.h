// device_time.h: which ranges launched what a device did, and how long that took.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include <marey/trace.h>

namespace marey {

/// Whether a site is of ranges that are work when they run on a device. The user's annotations there only
/// span the work that they cover: no sum holds their time.
bool is_device_work(const SiteInfo& site) noexcept;

/// Tells which work of a device the self time of a range there is.
class DeviceWork {
  public:
    explicit DeviceWork(const Trace& trace) : trace_(trace) {}
    /// The nearest range that is work: itself, or around it. kNoRow: none, the time is nobody's. Ranges are
    /// asked for in rising order; around those that were not, there is none.
    Row at(Row range);

  private:
    bool is_work(Row range) const noexcept {
        return is_device_work(trace_.sites()[trace_.ranges().site[range]]);
    }

    const Trace& trace_;
    std::unordered_map<Row, Row> around_;  ///< of annotations that have some
};

/// The nearest range around a host call (or itself) that is no call that drives a device. kNoRow: none.
Row range_around_call(const RangeColumns& ranges, std::span<const SiteInfo> sites, Row call) noexcept;

struct LaunchedTime {
    Row owner;  ///< the range that launched it
    Row range;  ///< what the device did
    std::int64_t duration_ns;
    bool is_timed = false;  ///< what events around the owner measured: the time of those inside it too
};

/// What was launched, once each: the owner is the nearest range around the launching host call that is no
/// such call itself, or that call where there is none. Async ranges own nothing, and annotations are not
/// launched. In order of the links.
std::vector<LaunchedTime> launched_times(const Trace& trace);

/// Times of devices per range of the trace. Empty when nothing was launched.
struct DeviceTimes {
    std::vector<std::int64_t>
        total;                       ///< of what it and the ranges inside it launched; of a timed one its own
    std::vector<std::int64_t> self;  ///< without the totals of the ranges inside it
};
DeviceTimes device_times(const Trace& trace, const std::vector<LaunchedTime>& launched);

}  // namespace marey
