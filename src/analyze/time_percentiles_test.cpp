// time_percentiles_test.cpp: time statistics, compared with those of the sorted list.
#include "analyze/time_percentiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace marey {
namespace {

TEST(TimeStatistics, OfNothingAndOfOne) {
    EXPECT_EQ(time_statistics({}).count, 0u);
    const TimeStatistics one = time_statistics({7});
    EXPECT_EQ(one.count, 1u);
    EXPECT_EQ(one.min_ns, 7);
    EXPECT_EQ(one.median_ns, 7);
    EXPECT_EQ(one.p99_ns, 7);
    EXPECT_EQ(one.max_ns, 7);
    EXPECT_EQ(one.stdev_ns, 0);
}

TEST(TimeStatistics, AreThoseOfTheSortedList) {
    std::mt19937_64 random(5);
    for (std::size_t count = 1; count < 300; ++count) {
        std::vector<std::int64_t> values(count);
        for (std::int64_t& value : values) value = static_cast<std::int64_t>(random() % 1000) - 300;
        const TimeStatistics found = time_statistics(values);
        std::sort(values.begin(), values.end());
        std::int64_t total = 0;
        for (const std::int64_t value : values) total += value;
        EXPECT_EQ(found.total_ns, total);
        EXPECT_DOUBLE_EQ(found.mean_ns, static_cast<double>(total) / static_cast<double>(count));
        EXPECT_EQ(found.min_ns, values.front());
        EXPECT_EQ(found.median_ns, values[(count + 1) / 2 - 1]);
        EXPECT_EQ(found.p90_ns, values[(count * 90 + 99) / 100 - 1]);
        EXPECT_EQ(found.p99_ns, values[(count * 99 + 99) / 100 - 1]);
        EXPECT_EQ(found.max_ns, values.back());
    }
    const TimeStatistics three = time_statistics({2, 4, 6});
    EXPECT_DOUBLE_EQ(three.stdev_ns, 2);
}

}  // namespace
}  // namespace marey
