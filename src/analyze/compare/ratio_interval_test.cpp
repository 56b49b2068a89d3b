// ratio_interval_test.cpp: the intervals against tables, and their coverage in seeded simulations.
#include "analyze/compare/ratio_interval.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace marey {
namespace {

TEST(StudentDistribution, AgreesWithTables) {
    EXPECT_NEAR(student_quantile(0.975, 1), 12.70620, 1e-4);
    EXPECT_NEAR(student_quantile(0.975, 9), 2.262157, 1e-6);
    EXPECT_NEAR(student_quantile(0.995, 4), 4.604095, 1e-6);
    EXPECT_NEAR(student_quantile(0.975, 1e6), 1.959966, 1e-5);
    EXPECT_NEAR(student_two_sided(2.262157, 9), 0.05, 1e-7);
    EXPECT_NEAR(student_two_sided(0, 9), 1, 1e-12);
}

/// How the times of runs vary from run to run, in the order of recording.
enum class Noise { LogNormal, Bimodal, Drifting };

std::vector<double> times_of_runs(Noise noise, std::size_t count, std::mt19937_64& random) {
    std::normal_distribution<double> normal;
    std::uniform_real_distribution<double> uniform;
    std::vector<double> times;
    double walk = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const double place = static_cast<double>(i) / static_cast<double>(count);
        walk += 0.04 * normal(random);
        double log = 0.15 * normal(random);
        if (noise == Noise::Bimodal)
            log = 0.02 * normal(random) + (uniform(random) < 0.3 ? std::log(1.4) : 0);
        if (noise == Noise::Drifting) log = 0.04 * normal(random) + walk + 0.3 * place;
        times.push_back(1e6 * std::exp(log));
    }
    return times;
}

/// The share of simulated comparisons whose interval contains the true ratio.
double coverage(Noise noise, std::size_t runs, bool in_turns) {
    constexpr int kComparisons = 2000;
    constexpr double kTruth = 1.1;
    std::mt19937_64 random(17 + runs + static_cast<std::size_t>(noise));
    int covered = 0;
    for (int i = 0; i < kComparisons; ++i) {
        const std::vector<double> times = times_of_runs(noise, 2 * runs, random);
        std::vector<double> sides[2];
        for (std::size_t run = 0; run < times.size(); ++run) {
            const std::size_t side = (run + run / 2) % 2;
            sides[side].push_back(times[run] * (side == 1 ? kTruth : 1));
        }
        const auto interval = ratio_interval(sides[0], sides[1], in_turns);
        covered += interval && interval->low <= kTruth && kTruth <= interval->high;
    }
    return static_cast<double>(covered) / kComparisons;
}

TEST(RatioInterval, CoversTheTruthAsOftenAsItSays) {
    for (const Noise noise : {Noise::LogNormal, Noise::Bimodal, Noise::Drifting}) {
        SCOPED_TRACE(static_cast<int>(noise));
        EXPECT_GE(coverage(noise, 10, true), 0.93);
        EXPECT_LE(coverage(noise, 10, true), 0.97);
        EXPECT_GE(coverage(noise, 5, true), 0.90);
        if (noise == Noise::Drifting) continue;  // only pairs remove a drift
        EXPECT_GE(coverage(noise, 10, false), 0.93);
        EXPECT_LE(coverage(noise, 10, false), 0.97);
        EXPECT_GE(coverage(noise, 5, false), 0.90);
    }
}

TEST(RatioInterval, IsNarrowerInTurnsIfTheMachineDrifts) {
    std::mt19937_64 random(3);
    double widths[2] = {0, 0};
    for (int i = 0; i < 200; ++i) {
        const std::vector<double> times = times_of_runs(Noise::Drifting, 20, random);
        std::vector<double> sides[2];
        for (std::size_t run = 0; run < times.size(); ++run) sides[(run + run / 2) % 2].push_back(times[run]);
        for (const bool in_turns : {false, true}) {
            const auto interval = ratio_interval(sides[0], sides[1], in_turns);
            widths[in_turns] += std::log(interval->high / interval->low);
        }
    }
    EXPECT_LT(widths[1], 0.6 * widths[0]);
}

TEST(RatioInterval, FindsAThirdMoreInFiveRunsThatVaryLittle) {
    constexpr int kComparisons = 500;
    std::mt19937_64 random(5);
    std::normal_distribution<double> normal;
    int found = 0;
    for (int i = 0; i < kComparisons; ++i) {
        std::vector<double> before, after;
        for (int run = 0; run < 5; ++run) {
            before.push_back(std::exp(0.08 * normal(random)));
            after.push_back(1.3 * std::exp(0.08 * normal(random)));
        }
        found += ratio_interval(before, after, true)->p < 0.005;  // the first of ten rows
    }
    EXPECT_GT(found, kComparisons * 2 / 3);  // differences of pairs, with 4 degrees of freedom: half
}

TEST(RatioInterval, NeedsThreeRunsAndPositiveTimes) {
    EXPECT_FALSE(ratio_interval(std::vector{1.0}, std::vector{2.0}, false));
    EXPECT_FALSE(ratio_interval(std::vector{1.0, 0.0}, std::vector{2.0, 2.0}, false));
    EXPECT_FALSE(ratio_interval({}, std::vector{2.0, 2.0}, false));
    const auto interval = ratio_interval(std::vector{10.0}, std::vector<double>(20, 10.0), false);
    ASSERT_TRUE(interval) << "one run against 20";
    EXPECT_NEAR(interval->ratio, 1, 1e-12);
    EXPECT_EQ(interval->p, 1);
}

TEST(Verdict, NeedsBothChanceAndEffect) {
    const auto verdict = [](double low, double ratio, double high, bool is_significant) {
        return verdict_of({.ratio = ratio, .low = low, .high = high}, 0.05, is_significant);
    };
    EXPECT_EQ(verdict(1.1, 1.2, 1.3, true), Verdict::Slower);
    EXPECT_EQ(verdict(0.7, 0.8, 0.9, true), Verdict::Faster);
    EXPECT_EQ(verdict(1.01, 1.02, 1.03, true), Verdict::Same) << "real, but smaller than anybody cares";
    EXPECT_EQ(verdict(0.99, 1.2, 1.5, false), Verdict::CannotTell);
    EXPECT_EQ(verdict(1.1, 1.2, 1.3, false), Verdict::CannotTell) << "one of many rows";
    EXPECT_EQ(verdict(1.01, 1.04, 1.07, true), Verdict::CannotTell);
}

TEST(Verdict, SaysHowManyMoreRunsWouldDecide) {
    const std::vector<double> before{100, 130, 90, 120}, after{120, 140, 110, 150};
    const auto interval = ratio_interval(before, after, false);
    const auto more = more_runs(*interval, 0.05, 0.05);
    ASSERT_TRUE(more);
    std::vector<double> old_runs = before, new_runs = after;
    while (old_runs.size() < before.size() + *more) {  // runs that vary as these do
        old_runs.push_back(before[old_runs.size() % before.size()]);
        new_runs.push_back(after[new_runs.size() % after.size()]);
    }
    const auto later = ratio_interval(old_runs, new_runs, false);
    EXPECT_GT(later->low, 1);
    EXPECT_FALSE(more_runs({.ratio = 1.05, .low = 0.5, .high = 2, .error = 0.5, .runs = 3}, 0.05, 0.05))
        << "a ratio at the limit itself";
}

}  // namespace
}  // namespace marey
