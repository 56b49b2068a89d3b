// device_clock.h: a clock that differs from the host's, and the measured relation between the two.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulated/settings.h"

namespace marey::simulated {

/// Converts host ticks to nanoseconds, and back.
double ticks_to_ns(double ticks) noexcept;
double ns_to_ticks(double ns) noexcept;

/// The time that the device's clock shows at a host time.
class DeviceClock {
  public:
    explicit DeviceClock(std::uint64_t origin) : origin_(origin) {}
    double show(std::uint64_t ticks, const Settings& settings) const noexcept {
        const double since = ticks_to_ns(static_cast<double>(static_cast<std::int64_t>(ticks - origin_)));
        return settings.skew_ns + since * (1 + settings.drift_ppm * 1e-6);
    }

  private:
    std::uint64_t origin_;
};

/// One reading: the device's clock showed `device_ns` at some time within `half_width` ticks of `ticks`.
struct ClockReading {
    double ticks;
    double device_ns;
    double half_width;
};

/// Converts device times to host times, based on readings. Between two readings the error is no larger than
/// theirs; all times of interest lie between readings, because a reading is taken before work is launched and
/// after it is done.
class ClockRelation {
  public:
    /// Must be called in time order.
    void add(const ClockReading& reading) { readings_.push_back(reading); }
    void forget() { readings_.clear(); }
    bool empty() const noexcept { return readings_.empty(); }
    std::uint64_t to_ticks(double device_ns) const noexcept;
    /// JSON: number of readings, largest error of a time, rate of the clock.
    std::string report() const;

  private:
    std::vector<ClockReading> readings_;
};

}  // namespace marey::simulated
