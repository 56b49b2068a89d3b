// clock_fit_test.cpp: ticks to nanoseconds: exact, monotone, continuous, robust.
#include "collect/clocks/clock_fit.h"

#include <gtest/gtest.h>

#include <random>

namespace marey {
namespace {

using detail::ClockPair;
using detail::ClockSource;

TEST(ClockFit, IsTheIdentityWhereTicksAreNanoseconds) {
    for (const ClockSource source : {ClockSource::MonotonicRaw, ClockSource::Injected}) {
        const ClockFit fit(source, 0, {});
        for (const std::uint64_t ticks :
             {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{123'456'789'012'345'678}}) {
            EXPECT_EQ(fit.to_ns(ticks), static_cast<std::int64_t>(ticks));
        }
    }
    // Noise in the pairs does not disturb a clock that counts nanoseconds itself.
    const ClockFit fit(ClockSource::MonotonicRaw, 1'000'000'000,
                       {{1000, 1020, 0, 40}, {50'000'000, 50'000'010, 0, 40}});
    EXPECT_EQ(fit.to_ns(777), 777);
}

TEST(ClockFit, UsesTheNominalRateWithASinglePair) {
    const ClockFit fit(ClockSource::Cntvct, 25'000'000, {{1'000'000, 5'000'000'000, 7'000'000'000, 4}});
    EXPECT_EQ(fit.to_ns(1'000'000), 5'000'000'000);
    EXPECT_EQ(fit.to_ns(1'000'025), 5'000'001'000);
    EXPECT_EQ(fit.to_ns(999'975), 4'999'999'000);
    EXPECT_EQ(fit.realtime_offset_ns(), 2'000'000'000);
    EXPECT_EQ(fit.max_error_ns(), 80);
}

TEST(ClockFit, UsesTheNominalRateWhenAllPairsAreNearEachOther) {
    const ClockFit fit(ClockSource::Cntvct, 1'000'000'000, {{1000, 1000, 0, 90}, {2000, 2040, 0, 20}});
    EXPECT_EQ(fit.to_ns(2000), 2040);
    EXPECT_EQ(fit.to_ns(1000), 1040);
}

TEST(ClockFit, MatchesItsKnotsAndLosesNoNanosecondBetweenThem) {
    // A counter of 24 MHz that runs 30 ppm fast, far from zero.
    std::vector<ClockPair> pairs;
    for (std::int64_t i = 0; i < 100; ++i) {
        pairs.push_back(
            {(std::uint64_t{1} << 60) + static_cast<std::uint64_t>(i) * 24'000'720, i * 1'000'000'000, 0, 1});
    }
    const ClockFit fit(ClockSource::Cntvct, 24'000'000, pairs);
    for (const ClockPair& pair : pairs) EXPECT_EQ(fit.to_ns(pair.ticks), pair.raw_ns);
    EXPECT_NEAR(fit.ticks_per_second(), 24'000'720.0, 1e-3);
    TickConverter convert(fit);
    std::mt19937_64 random(1);
    for (int i = 0; i < 10'000; ++i) {
        const std::uint64_t offset = random() % (99ull * 24'000'720);
        const long double exact = static_cast<long double>(offset) * 1'000'000'000 / 24'000'720;
        const std::int64_t ns = fit.to_ns((std::uint64_t{1} << 60) + offset);
        EXPECT_LE(std::abs(static_cast<long double>(ns) - exact), 1.0L);
        EXPECT_EQ(convert((std::uint64_t{1} << 60) + offset), ns);
    }
}

TEST(ClockFit, IsMonotonicForAnyPairs) {
    std::mt19937_64 random(2);
    for (int round = 0; round < 500; ++round) {
        std::vector<ClockPair> pairs;
        for (std::uint64_t i = random() % 12; i != 0; --i) {
            const auto wild = [&] { return random() >> random() % 64; };
            pairs.push_back(
                {wild(), static_cast<std::int64_t>(wild()), static_cast<std::int64_t>(wild()), wild()});
        }
        const ClockFit fit(static_cast<ClockSource>(random() % 4), random() >> random() % 64, pairs);
        TickConverter convert(fit);
        std::vector<std::uint64_t> ticks;
        for (const ClockPair& pair : pairs)
            ticks.insert(ticks.end(), {pair.ticks - 1, pair.ticks, pair.ticks + 1});
        for (int i = 0; i < 100; ++i) ticks.push_back(random() >> random() % 64);
        std::sort(ticks.begin(), ticks.end());
        for (std::size_t i = 1; i < ticks.size(); ++i) {
            EXPECT_LE(fit.to_ns(ticks[i - 1]), fit.to_ns(ticks[i])) << round;
            EXPECT_EQ(convert(ticks[i]), fit.to_ns(ticks[i]));
        }
    }
}

TEST(ClockFit, LeavesOutPairsThatTookLongOrRunBackwards) {
    std::vector<ClockPair> pairs;
    for (std::uint64_t i = 1; i <= 50; ++i)
        pairs.push_back({i * 100'000'000, static_cast<std::int64_t>(i * 100'000'000), 0, 20});
    pairs[20].width = 50'000;
    pairs[20].raw_ns += 25'000;
    pairs[30].raw_ns = 1'000'000'000'000;
    const ClockFit fit(ClockSource::Tsc, 1'000'000'000, pairs);
    EXPECT_EQ(fit.to_ns(2'100'000'000), 2'100'000'000);
    EXPECT_EQ(fit.to_ns(3'100'000'000), 3'100'000'000);
    EXPECT_EQ(fit.max_error_ns(), 10);
    EXPECT_EQ(fit.pairs_used(), 48u);
}

TEST(ClockFit, PairsNearEachOtherDoNotMakeNoisySlopes) {
    std::mt19937 random(3);
    std::vector<ClockPair> pairs;
    for (std::uint64_t i = 0; i < 10'000; ++i) {  // one every 100 us, each off by up to 25 ns
        pairs.push_back({1 + i * 100'000, static_cast<std::int64_t>(i * 100'000 + random() % 50), 0, 50});
    }
    const ClockFit fit(ClockSource::Tsc, 1'000'000'000, pairs);
    for (std::size_t i = 0; i + 1 < fit.segments().size(); ++i) {
        const auto& segment = fit.segments()[i];
        const double slope =
            std::ldexp(static_cast<double>(segment.multiplier), -static_cast<int>(segment.shift));
        EXPECT_NEAR(slope, 1.0, 10e-6);
    }
}

TEST(ClockFit, ReportsWhenTheEndIsExtrapolated) {
    const ClockFit fit(ClockSource::Tsc, 1'000'000'000,
                       {{1000, 1000, 0, 10}, {1'000'000'000, 1'000'000'000, 0, 10}});
    EXPECT_FALSE(fit.is_extrapolated_at(1'000'000'500));
    EXPECT_TRUE(fit.is_extrapolated_at(1'900'000'000));
    EXPECT_EQ(fit.to_ns(2'000'000'000), 2'000'000'000);
}

}  // namespace
}  // namespace marey
