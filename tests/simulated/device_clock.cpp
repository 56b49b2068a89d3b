// device_clock.cpp: interpolates linearly between readings.
#include "simulated/device_clock.h"

#include <algorithm>
#include <cmath>

#include <marey/device.h>

namespace marey::simulated {

double ticks_to_ns(double ticks) noexcept {
    return ticks * 1e9 / static_cast<double>(device_ticks_per_second());
}

double ns_to_ticks(double ns) noexcept {
    return ns * static_cast<double>(device_ticks_per_second()) / 1e9;
}

std::uint64_t ClockRelation::to_ticks(double device_ns) const noexcept {
    if (readings_.empty()) return 0;
    const ClockReading& last = readings_.back();
    auto after = std::lower_bound(
        readings_.begin(), readings_.end(), device_ns,
        [](const ClockReading& reading, double wanted) { return reading.device_ns < wanted; });
    double ticks;
    if (after == readings_.begin()) {
        ticks = after->ticks - ns_to_ticks(after->device_ns - device_ns);
    } else if (after == readings_.end()) {
        ticks = last.ticks + ns_to_ticks(device_ns - last.device_ns);
    } else {
        const ClockReading& before = *(after - 1);
        const double share = (device_ns - before.device_ns) / (after->device_ns - before.device_ns);
        ticks = before.ticks + share * (after->ticks - before.ticks);
    }
    return static_cast<std::uint64_t>(std::llround(std::max(ticks, 0.0)));
}

std::string ClockRelation::report() const {
    std::vector<double> errors;
    for (const ClockReading& reading : readings_) errors.push_back(ticks_to_ns(reading.half_width));
    std::sort(errors.begin(), errors.end());
    const auto whole = [](double ns) { return std::to_string(std::llround(std::ceil(ns))); };
    const ClockReading& first = readings_.front();
    const ClockReading& last = readings_.back();
    const double host_ns = ticks_to_ns(last.ticks - first.ticks);
    const double drift = host_ns > 0 ? ((last.device_ns - first.device_ns) / host_ns - 1) * 1e6 : 0;
    return "{\"readings\": " + std::to_string(errors.size()) +
           ", \"median_error_ns\": " + whole(errors[errors.size() / 2]) +
           ", \"worst_error_ns\": " + whole(errors.back()) + ", \"drift_ppm\": " + std::to_string(drift) +
           "}";
}

}  // namespace marey::simulated
