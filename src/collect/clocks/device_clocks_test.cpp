// device_clocks_test.cpp: times of a device whose clock drifts from the host's.
#include "collect/clocks/device_clocks.h"

#include <gtest/gtest.h>

namespace marey {
namespace {

constexpr Device kFirst{DeviceType::Cuda, 0};

void read_clock(DeviceClocks& clocks, std::uint64_t ticks, std::int64_t offset, std::uint32_t error = 10) {
    detail::LongRecord head{};
    head.time = ticks;
    head.word2 = static_cast<std::uint64_t>(offset);
    head.depth = error;
    clocks.add(head, {0, 0, 0, static_cast<std::uint8_t>(DeviceType::Cuda), 0});
}

TEST(DeviceClocks, WithoutAReadingTimesStay) {
    DeviceClocks clocks;
    clocks.sort();
    EXPECT_EQ(clocks.correct(kFirst, 500), 500u);
    EXPECT_EQ(clocks.report(1e9), "");
}

TEST(DeviceClocks, OneReadingMovesAllTimesAndNoOtherDevices) {
    DeviceClocks clocks;
    read_clock(clocks, 1000, -30);
    clocks.sort();
    EXPECT_EQ(clocks.correct(kFirst, 500), 470u);
    EXPECT_EQ(clocks.correct({DeviceType::Cuda, 1}, 500), 500u);
    EXPECT_EQ(clocks.correct({DeviceType::Other, 0}, 500), 500u);
}

TEST(DeviceClocks, BetweenReadingsTheirLineHoldsAndBeyondThemForAsLongAgain) {
    DeviceClocks clocks;
    read_clock(clocks, 2000, 40);
    read_clock(clocks, 1000, 20);   // in any order
    read_clock(clocks, 1000, 999);  // the first of a time counts
    clocks.sort();
    EXPECT_EQ(clocks.correct(kFirst, 1000), 1020u);
    EXPECT_EQ(clocks.correct(kFirst, 1500), 1530u);
    EXPECT_EQ(clocks.correct(kFirst, 2000), 2040u);
    EXPECT_EQ(clocks.correct(kFirst, 500), 510u);
    EXPECT_EQ(clocks.correct(kFirst, 2500), 2550u);
    EXPECT_EQ(clocks.correct(kFirst, 9000), 9060u);
}

TEST(DeviceClocks, ReportTheErrorOfTimes) {
    DeviceClocks clocks;
    read_clock(clocks, 1000, 0, 10);
    read_clock(clocks, 2000, 0, 30);
    read_clock(clocks, 3000, 0, 20);
    clocks.sort();
    EXPECT_EQ(clocks.report(1e9), "{\"readings\": 3, \"median_error_ns\": 20, \"worst_error_ns\": 30}");
}

}  // namespace
}  // namespace marey
