// time_percentiles.cpp: searches each rank only in the values after the previous one.
#include "analyze/time_percentiles.h"

#include <algorithm>
#include <cmath>

namespace marey {

TimeStatistics time_statistics(std::vector<std::int64_t> values) {
    TimeStatistics result;
    result.count = values.size();
    if (values.empty()) return result;
    double sum = 0;
    for (const std::int64_t value : values) {
        result.total_ns += value;
        sum += static_cast<double>(value);
    }
    result.mean_ns = sum / static_cast<double>(values.size());
    double squares = 0;
    for (const std::int64_t value : values) {
        const double distance = static_cast<double>(value) - result.mean_ns;
        squares += distance * distance;
    }
    if (values.size() > 1) result.stdev_ns = std::sqrt(squares / static_cast<double>(values.size() - 1));
    auto sorted = values.begin();  // no value before it is larger than any after it
    const auto at_rank = [&](unsigned percent) {
        const auto place = values.begin() + static_cast<std::ptrdiff_t>(nearest_rank(values.size(), percent));
        std::nth_element(sorted, place, values.end());
        sorted = place;
        return *place;
    };
    result.min_ns = *std::ranges::min_element(values);
    result.median_ns = at_rank(50);
    result.p90_ns = at_rank(90);
    result.p99_ns = at_rank(99);
    result.max_ns = *std::max_element(sorted, values.end());
    return result;
}

}  // namespace marey
