// time_statistics.h: statistics of a set of times.
#pragma once

#include <cstdint>

namespace marey {

/// Statistics of a set of times. Percentiles are nearest ranks: the smallest of the values that this share of
/// them does not exceed.
struct TimeStatistics {
    std::uint64_t count = 0;
    std::int64_t total_ns = 0;
    double mean_ns = 0;
    double stdev_ns = 0;  ///< sample standard deviation; 0 for fewer than two values
    std::int64_t min_ns = 0;
    std::int64_t median_ns = 0;
    std::int64_t p90_ns = 0;
    std::int64_t p99_ns = 0;
    std::int64_t max_ns = 0;
};

}  // namespace marey
