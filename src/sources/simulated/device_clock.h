// device_clock.h: a clock that runs apart from the host's, and what is known of how far.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sources/simulated/settings.h"

namespace marey::simulated {

/// Ticks of the host as nanoseconds, and back.
double ticks_to_ns(double ticks) noexcept;
double ns_to_ticks(double ns) noexcept;

/// What the device's clock shows when the host's shows something.
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

/// One reading of it: it showed `device_ns` at some time within `half_width` ticks of `ticks`.
struct ClockReading {
    double ticks;
    double device_ns;
    double half_width;
};

/// From readings to times of the host. Between two readings a time is off by no more than they are; what is
/// asked for lies between, because a reading is taken before work is launched and after it is done.
class ClockRelation {
  public:
    /// In order of their times.
    void add(const ClockReading& reading) { readings_.push_back(reading); }
    void forget() { readings_.clear(); }
    bool empty() const noexcept { return readings_.empty(); }
    std::uint64_t to_ticks(double device_ns) const noexcept;
    /// JSON: how many, how far off a time may be, how fast the clock runs.
    std::string report() const;

  private:
    std::vector<ClockReading> readings_;
};

}  // namespace marey::simulated
