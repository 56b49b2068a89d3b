// time_percentiles.h: statistics of times, in linear time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <marey/time_statistics.h>

namespace marey {

/// The index of the nearest rank (1-based). `count` must be at least 1.
inline std::size_t nearest_rank(std::size_t count, unsigned percent) noexcept {
    return (count * percent + 99) / 100 - 1;
}

TimeStatistics time_statistics(std::vector<std::int64_t> values);

}  // namespace marey
