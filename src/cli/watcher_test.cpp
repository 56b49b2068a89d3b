// watcher_test.cpp: conditions on parts of a capture, which overlap and have a clock of their own each.
#include "cli/watcher.h"

#include <gtest/gtest.h>

#include "analyze/trace_fixture.h"

namespace marey::cli {
namespace {

constexpr std::int64_t kMs = 1'000'000, kS = 1'000'000'000;

std::vector<WatchCondition> conditions(const std::vector<std::string>& texts) {
    std::vector<WatchCondition> all;
    for (const std::string& text : texts) all.push_back(parse_watch_condition(text));
    return all;
}

std::vector<std::string> reasons(const std::vector<WatchHit>& hits) {
    std::vector<std::string> texts;
    for (const WatchHit& hit : hits) texts.push_back(hit.reason);
    return texts;
}

using Reasons = std::vector<std::string>;

/// A trace of a program that runs.
TraceFixture running() {
    TraceFixture fixture;
    fixture.problem("running", "the program is still running");
    fixture.data().window.finished = false;
    return fixture;
}

/// One with these ranges on its only thread.
Trace running(const std::vector<RangeSpec>& ranges) {
    return running().thread("main", ranges).trace();
}

TEST(Watcher, ASlowRangeIsToldOnceAlthoughPartsOverlap) {
    const auto all = conditions({"handle > 250ms"});
    Watcher watcher(all);
    EXPECT_EQ(reasons(watcher.check(running({{"handle", 0, 10 * kMs}}), 0)), Reasons());
    const std::vector<RangeSpec> slow{{"handle", 0, 10 * kMs}, {"handle", 20 * kMs, 800 * kMs}};
    const std::vector<WatchHit> hits = watcher.check(running(slow), 0);
    EXPECT_EQ(reasons(hits), Reasons{"handle took 800 ms (limit 250ms)"});
    EXPECT_EQ(hits[0].label, "slow-handle");
    EXPECT_EQ(hits[0].begin_ns, 20 * kMs);
    EXPECT_EQ(hits[0].end_ns, 820 * kMs);
    EXPECT_EQ(hits[0].os_tid, 1001);
    EXPECT_EQ(reasons(watcher.check(running(slow), 0)), Reasons());
    // The next part has a fit of the clock of its own.
    EXPECT_EQ(reasons(watcher.check(
                  running({{"handle", 20 * kMs + 300, 800 * kMs}, {"handle", 900 * kMs, 300 * kMs}}), 0)),
              Reasons{"handle took 300 ms (limit 250ms)"});
    EXPECT_TRUE(watcher.has_seen(0));
}

TEST(Watcher, ARangeThatEndsTogetherWithTheOneInsideItIsToldToo) {
    const auto all = conditions({"* > 250ms"});
    Watcher watcher(all);
    const std::vector<RangeSpec> open{{"outer", 0, 400 * kMs + 10, {{"inner", 10, 400 * kMs}}, kUnfinished}};
    EXPECT_EQ(watcher.check(running(open), 0).size(), 1u);
    EXPECT_EQ(reasons(watcher.check(running({{"outer", 0, 400 * kMs + 10, {{"inner", 10, 400 * kMs}}}}), 0)),
              Reasons{"outer took 400 ms (limit 250ms)"});
}

TEST(Watcher, MethodsAreNamedWithOrWithoutTheirClass) {
    const auto all = conditions({"handle > 1ms", "Api.handle > 1ms", "andle > 1ms"});
    Watcher watcher(all);
    TraceFixture fixture = running();
    fixture.site("api.py(6): Api.handle", Scope::PythonFunction);
    EXPECT_EQ(
        reasons(watcher.check(fixture.thread("main", {{"api.py(6): Api.handle", 0, 2 * kMs}}).trace(), 0)),
        (Reasons{"Api.handle took 2.00 ms (limit 1ms)", "Api.handle took 2.00 ms (limit 1ms)"}));
    EXPECT_FALSE(watcher.has_seen(2));
}

TEST(Watcher, AStallIsToldWhileTheRangeIsOpenAndOnlyThen) {
    const auto all = conditions({"stall > 30s", "stall:load > 1s", "load > 1s"});
    Watcher watcher(all);
    const auto open = [](std::int64_t time) {
        return running(
            {{"step", 0, time, {{"load", 5 * kMs, time - 5 * kMs, {}, kUnfinished}}, kUnfinished}});
    };
    EXPECT_EQ(reasons(watcher.check(open(kS), 0)), Reasons());
    EXPECT_EQ(reasons(watcher.check(open(2 * kS), 0)), Reasons{"load is open for 2.00 s (limit 1s)"});
    EXPECT_EQ(reasons(watcher.check(open(3 * kS), 0)), Reasons());
    EXPECT_EQ(reasons(watcher.check(open(31 * kS), 0)), Reasons{"load is open for 31.0 s (limit 30s)"});
    EXPECT_EQ(reasons(watcher.check(open(32 * kS), 0)), Reasons());
    EXPECT_EQ(reasons(watcher.check(running({{"load", 5 * kMs, 33 * kS}}), 0)),
              Reasons{"load took 33.0 s (limit 1s)"});
}

TEST(Watcher, AThreadThatWaitsIsAStallOnlyInsideWhatTheProgramMarks) {
    const auto all = conditions({"stall > 1s"});
    const auto waits = [](Scope outer) {
        TraceFixture fixture = running();
        fixture.site("app.py(1): work", outer);
        const std::string inner = "queue.py(154): Queue.get";
        fixture.site(inner, Scope::PythonFunction, "/usr/lib/python3.11/queue.py");
        return fixture
            .thread("worker",
                    {{"app.py(1): work", 0, 9 * kS, {{inner, 1, 9 * kS - 1, {}, kUnfinished}}, kUnfinished}})
            .trace();
    };
    EXPECT_EQ(reasons(Watcher(all).check(waits(Scope::PythonFunction), 0)), Reasons());
    EXPECT_EQ(Watcher(all).check(waits(Scope::User), 0).size(), 1u);
}

TEST(Watcher, AQuantileNeedsEnoughTimes) {
    const auto all = conditions({"handle > p99*3"});
    Watcher watcher(all);
    std::vector<RangeSpec> ranges;
    for (int i = 0; i < 50; ++i) ranges.push_back({"handle", i * 10 * kMs, kMs});
    ranges.push_back({"handle", 500 * kMs, 400 * kMs});
    EXPECT_EQ(watcher.check(running(ranges), 0).size(), 0u);
    for (int i = 0; i < 200; ++i) ranges.push_back({"handle", kS + i * 10 * kMs, kMs});
    EXPECT_EQ(watcher.check(running(ranges), 0).size(), 0u);
    ranges.push_back({"handle", 4 * kS, 2 * kMs});
    ranges.push_back({"handle", 5 * kS, 1300 * kMs});
    EXPECT_EQ(reasons(watcher.check(running(ranges), 0)),
              Reasons{"handle took 1.30 s (limit p99*3: 3.00 ms)"});
}

TEST(Watcher, AStepIsComparedWithTheMedian) {
    const auto all = conditions({"step > 1.5x"});
    Watcher watcher(all);
    const auto steps = [](std::int64_t last) {
        TraceFixture fixture = running();
        std::vector<RangeSpec> ranges;
        for (int i = 0; i < 10; ++i) {
            ranges.push_back({"step " + std::to_string(i), i * 200 * kMs, 100 * kMs});
            fixture.site(ranges.back().name, Scope::Step);
        }
        fixture.site("step 10", Scope::Step);
        if (last != 0) ranges.push_back({"step 10", 2 * kS, last});
        return fixture.thread("main", ranges).trace();
    };
    EXPECT_EQ(watcher.check(steps(0), 0).size(), 0u);
    EXPECT_EQ(reasons(watcher.check(steps(200 * kMs), 0)),
              Reasons{"step 10 took 200 ms (limit 1.5x: 150 ms)"});
}

TEST(Watcher, CountersAndMemoryAreToldWhenTheyRise) {
    const auto all = conditions({"counter queue > 10", "memory > 1MB"});
    Watcher watcher(all);
    const auto queue = [](std::int64_t time, double value) {
        return running().thread("main", {{"work", 0, time}}).counter("queue", time, value).trace();
    };
    EXPECT_EQ(reasons(watcher.check(queue(kS, 5), 1000)), Reasons());
    EXPECT_EQ(reasons(watcher.check(queue(2 * kS, 12), 3 << 20)),
              (Reasons{"queue was 12 (limit 10)", "the process uses 3.00 MiB of memory (limit 1MB)"}));
    EXPECT_EQ(reasons(watcher.check(queue(3 * kS, 13), 3 << 20)), Reasons());
    EXPECT_EQ(reasons(watcher.check(queue(4 * kS, 3), 1000)), Reasons());
    EXPECT_EQ(watcher.check(queue(5 * kS, 14), 3 << 20).size(), 2u);
}

TEST(Watcher, ExceptionsHaveTheirTypes) {
    const auto all = conditions({"exception:ValueError", "exception"});
    Watcher watcher(all);
    const auto thrown = [](const std::string& type, std::int64_t time) {
        return running().thread("main", {{"work", 0, time}}).instant("exception " + type, time).trace();
    };
    EXPECT_EQ(reasons(watcher.check(thrown("KeyError", kS), 0)), Reasons{"KeyError"});
    EXPECT_EQ(reasons(watcher.check(thrown("KeyError", kS), 0)), Reasons());
    EXPECT_EQ(reasons(watcher.check(thrown("ValueError", 2 * kS), 0)), (Reasons{"ValueError", "ValueError"}));
}

TEST(Watcher, ADeadProcessIsToldOnce) {
    const auto all = conditions({"died"});
    Watcher watcher(all);
    const auto killed = [] {
        TraceFixture fixture;
        fixture.problem("crashed", "the program did not close its capture");
        fixture.data().window.finished = false;
        fixture.data().processes[0].exit_signal = 9;
        return fixture.thread("main", {{"load", 0, kS, {}, kUnfinished}}).trace();
    };
    EXPECT_EQ(watcher.check(running({{"load", 0, kS, {}, kUnfinished}}), 0).size(), 0u);
    EXPECT_EQ(reasons(watcher.check(killed(), 0)), Reasons{"process 100 was killed by SIGKILL in load"});
    EXPECT_EQ(watcher.check(killed(), 0).size(), 0u);
}

}  // namespace
}  // namespace marey::cli
