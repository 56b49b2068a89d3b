// observer_sampling.cpp: observers that see only a share of the ranges.
#include <atomic>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <marey/all.h>

#include "support/counting_observer.h"

namespace {

using marey::ObservedRange;
using marey::Observer;
using marey::ObserverContext;

class Sampling : public ::testing::Test {
  protected:
    void TearDown() override { marey::clear_observers(); }
};

// R28 R29 R30 R69
TEST_F(Sampling, SamplingSeesItsShareOfRangesInPairs) {
    marey::seed_sampling_for_testing(7);
    for (const double share : {0.5, 0.1, 0.01}) {
        Count count;
        Observer observer = counting(count);
        observer.sampling = share;
        const auto handle = marey::add_observer(observer);
        open_ranges(100'000);
        marey::remove_and_drain(handle);
        EXPECT_EQ(count.starts, count.ends);
        EXPECT_NEAR(count.starts, 100'000 * share, 5 * std::sqrt(100'000 * share)) << share;
    }
    Count never;
    Observer observer = counting(never);
    observer.sampling = 0;
    const auto handle = marey::add_observer(observer);
    open_ranges(1000);
    EXPECT_TRUE(marey::has_observers());
    marey::remove_and_drain(handle);
    EXPECT_EQ(never.starts, 0);
    marey::seed_sampling_for_testing(0);
}

// R28
TEST_F(Sampling, SampledAndUnsampledObserversDoNotDisturbEachOther) {
    marey::seed_sampling_for_testing(8);
    Count all;
    Count some;
    Count few;
    Observer sampled = counting(some);
    sampled.sampling = 0.25;
    Observer rare = counting(few);
    rare.sampling = 0.01;
    marey::add_observer(counting(all));
    marey::add_observer(sampled);
    marey::add_observer(rare);
    open_ranges(40'000);
    EXPECT_EQ(all.starts, 40'000);
    EXPECT_NEAR(some.starts, 10'000, 500);
    EXPECT_NEAR(few.starts, 400, 100);
    EXPECT_EQ(some.starts, some.ends);
    marey::clear_observers();
    // Two sampled observers without others use the path that counts down for both at once.
    some.starts = few.starts = 0;
    marey::add_observer(sampled);
    marey::add_observer(rare);
    open_ranges(40'000);
    EXPECT_NEAR(some.starts, 10'000, 500);
    EXPECT_NEAR(few.starts, 400, 100);
    marey::clear_observers();
    marey::seed_sampling_for_testing(0);
}

// R31
TEST_F(Sampling, SamplingIsReproducibleUnderASeedAndThreadsDrawSeparately) {
    static thread_local std::vector<int>* hits = nullptr;
    static thread_local int at = 0;
    Observer observer{.start = [](const ObservedRange&, void*) -> std::unique_ptr<ObserverContext> {
        hits->push_back(at);
        return nullptr;
    }};
    observer.sampling = 0.05;
    const auto run = [&] {
        std::vector<int> found;
        hits = &found;
        for (at = 0; at < 2000; ++at) {
            MAREY_RANGE("sampled");
        }
        return found;
    };
    marey::add_observer(observer);
    marey::seed_sampling_for_testing(99);
    const std::vector<int> first = run();
    std::vector<int> other;
    std::thread([&] { other = run(); }).join();
    marey::seed_sampling_for_testing(99);
    EXPECT_EQ(run(), first);
    EXPECT_NE(other, first);
    marey::seed_sampling_for_testing(100);
    EXPECT_NE(run(), first);
    marey::seed_sampling_for_testing(0);
}

// R32 R39
TEST_F(Sampling, InputsAreGatheredOnlyForAnObserverThatWillSeeThisRange) {
    marey::seed_sampling_for_testing(5);
    static int seen = 0;
    seen = 0;
    Observer observer{.start = [](const ObservedRange& range, void*) -> std::unique_ptr<ObserverContext> {
        EXPECT_EQ(range.inputs().size(), 1u);
        ++seen;
        return nullptr;
    }};
    observer.sampling = 0.01;
    observer.needs_inputs = true;
    marey::add_observer(observer);
    int gathered = 0;
    for (int i = 0; i < 20'000; ++i) {
        marey::Operation op;
        if (op.needs_inputs()) {
            ++gathered;
            op.begin("op", {}, {marey::Value(i)});
        } else {
            op.begin("op");
        }
    }
    EXPECT_EQ(gathered, seen);
    EXPECT_NEAR(seen, 200, 70);
    // The same for values in a macro: they are evaluated only when an observer needs them.
    seen = 0;
    marey::clear_observers();
    Observer keyed{.start = [](const ObservedRange& range, void*) -> std::unique_ptr<ObserverContext> {
        EXPECT_EQ(range.keywords().size(), 1u);
        EXPECT_EQ(range.keywords()[0].key, "n");
        ++seen;
        return nullptr;
    }};
    keyed.sampling = 0.01;
    keyed.needs_inputs = true;
    marey::add_observer(keyed);
    int evaluated = 0;
    for (int i = 0; i < 20'000; ++i) {
        MAREY_RANGE("valued", "n", ++evaluated);
    }
    EXPECT_EQ(evaluated, seen);
    EXPECT_NEAR(seen, 200, 70);
    marey::seed_sampling_for_testing(0);
}

}  // namespace
