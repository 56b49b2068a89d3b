// clock_relation_test.cpp: runs of the probe, as the host and CUPTI would report them.
#include "sources/cuda/clock_relation.h"

#include <gtest/gtest.h>

#include <random>

namespace marey::cuda {
namespace {

TEST(ClockOffsets, AreBoundedByTheExchangesAndTheKernelsRun) {
    // The GPU's clock is 1000 ahead of the host's; CUPTI's times are 300 late.
    const std::vector<ClockExchange> exchanges = {{100, 1150, 200}, {300, 1310, 360}, {400, 1480, 490}};
    const ClockOffset offset = clock_offset(exchanges, 1090, 1500, {1, 0, 80 + 300, 510 + 300});
    EXPECT_LE(offset.min_ns, -300);
    EXPECT_GE(offset.max_ns, -300);
    EXPECT_LT(offset.max_ns - offset.min_ns, 200);
}

/// A host and a GPU with known clocks; adding `offset` to CUPTI's times makes them correct.
class Rounds {
  public:
    static constexpr int kRuns = 6;

    void to(std::uint64_t host_ns) { now_ = host_ns; }
    std::uint64_t now() const { return now_; }

    /// Passes the host's measurements to the relation and returns the runs that CUPTI will report.
    std::vector<ProbeRun> run(ClockRelation& relation, std::int64_t offset, int device = 0) {
        std::vector<ProbeRun> reported;
        ++round_;
        for (int i = 0; i < kRuns; ++i) {
            now_ += 15'000 + random_() % 4000;  // the launch
            ExchangedRun run{.device = device, .round = round_};
            const std::uint64_t start = now_;
            run.first_gpu_ns = gpu(now_ + 200);
            for (int exchange = 0; exchange < 8; ++exchange) {
                const std::uint64_t before = now_ + 300;
                now_ += 2500;
                run.exchanges.push_back({before, gpu(now_ - 1000), now_});
            }
            run.last_gpu_ns = gpu(now_ + 500);
            reported.push_back({0, device, shifted(start, offset), shifted(now_ + 800, offset)});
            relation.add(std::move(run));
        }
        return reported;
    }

  private:
    static std::uint64_t shifted(std::uint64_t ns, std::int64_t offset) {
        return static_cast<std::uint64_t>(static_cast<std::int64_t>(ns) - offset);
    }
    static std::uint64_t gpu(std::uint64_t host_ns) { return host_ns + 77'000'000'000; }

    std::uint64_t now_ = 1'000'000'000'000;
    std::uint32_t round_ = 0;
    std::mt19937 random_{7};
};

void expect_holds(const std::vector<ClockMeasurement>& measured, std::int64_t offset, std::size_t count = 1) {
    ASSERT_EQ(measured.size(), count) << offset;
    for (const ClockMeasurement& each : measured) {
        EXPECT_LE(each.offset.min_ns, double(offset));
        EXPECT_GE(each.offset.max_ns, double(offset));
        EXPECT_LT(each.offset.max_ns - each.offset.min_ns, 10'000);
    }
}

TEST(ClockRelation, HoldsForAnyErrorOfCuptisTimes) {
    for (const std::int64_t offset :
         {0, 19'000, -19'000, 300'000, -300'000, 10'000'000, -10'000'000, 2'000'000'000}) {
        Rounds rounds;
        ClockRelation relation;
        const auto reported = rounds.run(relation, offset);
        expect_holds(relation.measure(reported), offset);
    }
}

TEST(ClockRelation, FollowsDriftingTimesEvenIfSomeAreReportedLate) {
    for (const std::int64_t per_second : {10'000, -10'000}) {
        Rounds rounds;
        ClockRelation relation;
        std::vector<ProbeRun> held_back;
        for (int second = 0; second < 1000; ++second) {
            rounds.to(1'000'000'000'000 + std::uint64_t(second) * 1'000'000'000);
            const std::int64_t offset = second * per_second;
            auto reported = rounds.run(relation, offset);
            const std::size_t most = second % 3 == 0 ? 4 : reported.size();
            std::vector<ProbeRun> now(reported.begin(), reported.begin() + std::ptrdiff_t(most));
            const bool has_late = !held_back.empty();
            now.insert(now.end(), held_back.begin(), held_back.end());
            held_back.assign(reported.begin() + std::ptrdiff_t(most), reported.end());
            const auto measured = relation.measure(now);
            ASSERT_EQ(measured.size(), has_late ? 2u : 1u) << second;
            const ClockMeasurement& newest = measured.back();
            EXPECT_LE(newest.offset.min_ns, double(offset)) << second;
            EXPECT_GE(newest.offset.max_ns, double(offset)) << second;
        }
    }
}

TEST(ClockRelation, DevicesAreNotConfused) {
    Rounds rounds;
    ClockRelation relation;
    const std::uint64_t start = rounds.now();
    auto reported = rounds.run(relation, 50'000, 0);
    rounds.to(start + 9'000);  // at the same time
    const auto others = rounds.run(relation, -40'000, 1);
    reported.insert(reported.end(), others.begin(), others.end());
    const auto measured = relation.measure(reported);
    ASSERT_EQ(measured.size(), 2u);
    for (const ClockMeasurement& each : measured) expect_holds({each}, each.device == 0 ? 50'000 : -40'000);
}

TEST(ClockRelation, ContradictoryRunsGiveNoMeasurement) {
    Rounds rounds;
    ClockRelation relation;
    auto reported = rounds.run(relation, 0);
    reported[2].start_ns += 100'000;  // the host had no run at that time
    reported[2].end_ns += 100'000;
    EXPECT_TRUE(relation.measure(reported).empty());
    expect_holds(relation.measure(rounds.run(relation, 3'000)), 3'000);
}

TEST(ClockRelation, RunsThatCuptiLostAreForgotten) {
    Rounds rounds;
    ClockRelation relation;
    for (int i = 0; i < 2000; ++i) rounds.run(relation, 0);
    const auto reported = rounds.run(relation, 2'000);
    expect_holds(relation.measure(reported), 2'000);
}

}  // namespace
}  // namespace marey::cuda
