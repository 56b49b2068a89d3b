// time_statistics.h: many times in a few numbers.
#pragma once

#include <cstdint>

namespace marey {

/// Percentiles are nearest ranks: one of the values, the smallest that so many do not exceed.
struct TimeStatistics {
    std::uint64_t count = 0;
    std::int64_t total_ns = 0;
    double mean_ns = 0;
    double stdev_ns = 0;  ///< of a sample; 0 for fewer than two
    std::int64_t min_ns = 0;
    std::int64_t median_ns = 0;
    std::int64_t p90_ns = 0;
    std::int64_t p99_ns = 0;
    std::int64_t max_ns = 0;
};

}  // namespace marey
