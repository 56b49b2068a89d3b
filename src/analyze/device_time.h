// device_time.h: which ranges launched what a device did, and how long that took.
#pragma once

#include <cstdint>
#include <vector>

#include <kymo/trace.h>

namespace kymo {

struct LaunchedTime {
    Row owner;  ///< the range that launched it
    Row range;  ///< what the device did
    std::int64_t duration_ns;
};

/// What was launched, once each: the owner is the nearest range around the launching host call that is no
/// such call itself, or that call where there is none. Async ranges own nothing. In order of the links.
std::vector<LaunchedTime> launched_times(const Trace& trace);

/// Per range of the trace: what it and the ranges inside it launched. Empty when `launched` is.
std::vector<std::int64_t> total_launched_times(const Trace& trace, const std::vector<LaunchedTime>& launched);

}  // namespace kymo
