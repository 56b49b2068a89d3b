// clock_test.cpp: clock pairs, and the injected clock.
#include "record/clocks/clock.h"

#include <atomic>
#include <vector>

#include <gtest/gtest.h>

namespace marey {
namespace {

std::atomic<std::uint64_t> fake_ticks{0};
std::uint64_t fake_now() noexcept {
    return fake_ticks.load();
}

class InjectedClock : public ::testing::Test {
  protected:
    void SetUp() override { Clock::inject(fake_now); }
    void TearDown() override { Clock::inject(nullptr); }
};

TEST(Clock, GoesForward) {
    std::uint64_t last = Clock::now();
    for (int i = 0; i < 10'000; ++i) {
        const std::uint64_t now = Clock::now();
        ASSERT_GE(now + 1, last);  // reads of the counter are not ordered, to within a tick
        last = now;
    }
}

TEST(Clock, PairsAreMonotonicInEveryClockAndStateTheirWidth) {
    detail::ClockPair last = Clock::pair();
    const detail::ClockPair first = last;
    for (int i = 0; i < 1000; ++i) {
        const detail::ClockPair pair = Clock::pair();
        ASSERT_GE(pair.ticks, last.ticks);
        ASSERT_GE(pair.raw_ns, last.raw_ns);
        ASSERT_LT(pair.width, Clock::ticks_per_second());
        last = pair;
    }
    EXPECT_GT(last.ticks, first.ticks);
    EXPECT_GT(last.raw_ns, first.raw_ns);
}

TEST(Clock, PairsAgreeWithTheNominalRate) {
    const detail::ClockPair first = Clock::pair();
    detail::ClockPair last = first;
    while (last.raw_ns - first.raw_ns < 20'000'000) last = Clock::pair();
    const double seconds = static_cast<double>(last.raw_ns - first.raw_ns) / 1e9;
    const double ticks = static_cast<double>(last.ticks - first.ticks);
    const double rate = static_cast<double>(Clock::ticks_per_second());
    EXPECT_NEAR(ticks / seconds / rate, 1.0, 0.02);
    EXPECT_GT(first.real_ns, std::int64_t{1'500'000'000} * 1'000'000'000);  // a date after 2017
}

TEST(Clock, MayBeReadInlineOnlyWhenItIsTheCounter) {
    const bool counter =
        Clock::source() == detail::ClockSource::Tsc || Clock::source() == detail::ClockSource::Cntvct;
    EXPECT_EQ(Clock::is_inline(), counter);
    EXPECT_NE(Clock::source(), detail::ClockSource::Injected);
}

TEST_F(InjectedClock, GivesTheTicksOfTheFunction) {
    fake_ticks = 12'345;
    EXPECT_EQ(Clock::now(), 12'345u);
    const detail::ClockPair pair = Clock::pair();
    EXPECT_EQ(pair.ticks, 12'345u);
    EXPECT_EQ(pair.raw_ns, 12'345);
    EXPECT_EQ(pair.width, 0u);
    EXPECT_EQ(Clock::source(), detail::ClockSource::Injected);
    EXPECT_EQ(Clock::ticks_per_second(), 1'000'000'000u);
    EXPECT_FALSE(Clock::is_inline());
    Clock::inject(nullptr);
    EXPECT_NE(Clock::source(), detail::ClockSource::Injected);
    EXPECT_NE(Clock::now(), 12'345u);
}

}  // namespace
}  // namespace marey
