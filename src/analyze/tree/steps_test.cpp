// steps_test.cpp: loop iterations: which ranges they are, their durations, and how slow ones differ.
#include <gtest/gtest.h>

#include <map>

#include <marey/steps.h>

#include "analyze/trace_fixture.h"
#include "trace/random_trace_fixture.h"

namespace marey {
namespace {

std::vector<std::string> names_of(const StepReport& report) {
    std::vector<std::string> names;
    for (const StepInfo& step : report.steps) names.push_back(step.name + "=" + std::to_string(step.number));
    return names;
}
using Names = std::vector<std::string>;

/// One line per difference at one place: name, totals in the slow and in the median step.
std::string drawing(const SlowStep& slow, StepPlace place) {
    std::string text;
    for (const StepDifference& difference : slow.differences) {
        if (difference.place != place) continue;
        text += (difference.is_rest ? "(rest)" : difference.name) + " " +
                std::to_string(difference.slow.total_ns) + " " + std::to_string(difference.median.total_ns) +
                "\n";
    }
    return text;
}

TEST(StepsTest, AreRangesOfScopeStepOrNamedLikeTorchSteps) {
    TraceFixture fixture;
    fixture.site("epoch", Scope::Step);
    fixture.thread("t", {{"ProfilerStep#4", 0, 10, {{"ProfilerStep#9", 1, 2}}},
                         {"ProfilerStep#5", 10, 10},
                         {"ProfilerStep#x", 20, 1},
                         {"ProfilerStep", 21, 1},
                         {"ProfilerStep#", 22, 1},
                         {"epoch", 30, 5},
                         {"epoch", 40, 5}});
    const Trace trace = fixture.trace();
    EXPECT_EQ(names_of(step_report(trace)),
              (Names{"ProfilerStep#4=4", "ProfilerStep#5=5", "epoch=2", "epoch=3"}));
}

TEST(StepsTest, CanBeAnyRangesWhoseNameMatches) {
    const Trace trace =
        TraceFixture()
            .thread("t", {{"run", 0, 100, {{"batch 1", 0, 10}, {"batch 2", 20, 10}, {"bat", 40, 1}}}})
            .trace();
    const auto matching = [&](const char* pattern) {
        return names_of(step_report(trace, {.name = pattern})).size();
    };
    EXPECT_EQ(matching("batch*"), 2u);
    EXPECT_EQ(matching("b*t*"), 3u);
    EXPECT_EQ(matching("*"), 1u);  // the outermost
    EXPECT_EQ(matching("batch ?"), 2u);
    EXPECT_EQ(matching("*2"), 1u);
    EXPECT_EQ(matching("atch"), 0u);
    EXPECT_EQ(matching("bat"), 1u);
    EXPECT_EQ(matching("batch 1*?"), 0u);
}

TEST(StepsTest, HaveStatisticsAndGaps) {
    std::vector<RangeSpec> ranges;
    for (int i = 0; i < 10; ++i)
        ranges.push_back({"ProfilerStep#" + std::to_string(i), i * 200, 100 + i * 10});
    const StepReport report = step_report(TraceFixture().thread("t", ranges).trace());
    EXPECT_EQ(report.durations.count, 10u);
    EXPECT_EQ(report.durations.total_ns, 1450);
    EXPECT_DOUBLE_EQ(report.durations.mean_ns, 145);
    EXPECT_NEAR(report.durations.stdev_ns, 30.2765, 0.0001);
    EXPECT_EQ(report.durations.min_ns, 100);
    EXPECT_EQ(report.durations.median_ns, 140);
    EXPECT_EQ(report.durations.p90_ns, 180);
    EXPECT_EQ(report.durations.p99_ns, 190);
    EXPECT_EQ(report.durations.max_ns, 190);
    EXPECT_EQ(report.steps[report.median_step].duration_ns, 140);
    EXPECT_EQ(report.gaps.count, 9u);
    EXPECT_EQ(report.gaps.max_ns, 100);
    EXPECT_EQ(report.gaps.min_ns, 20);
    EXPECT_EQ(report.steps[0].gap_ns, -1);
    EXPECT_EQ(report.steps[9].gap_ns, 20);
    ASSERT_EQ(report.slowest.size(), 3u);
    EXPECT_EQ(report.slowest[0].step, 9u);
    EXPECT_EQ(report.slowest[2].step, 7u);
}

TEST(StepsTest, OfTwoThreadsHaveSeparateGaps) {
    const StepReport report = step_report(TraceFixture()
                                              .thread("one", {{"s", 0, 10}, {"s", 15, 10}})
                                              .thread("two", {{"s", 12, 10}, {"s", 30, 10}})
                                              .trace(),
                                          {.name = "s"});
    std::vector<std::int64_t> gaps;
    for (const StepInfo& step : report.steps) gaps.push_back(step.gap_ns);
    EXPECT_EQ(gaps, (std::vector<std::int64_t>{-1, -1, 5, 8}));
    EXPECT_EQ(report.steps[3].number, 1);
}

TEST(StepsTest, CutOffByTheWindowAreExcludedFromStatistics) {
    const StepReport report = step_report(
        TraceFixture()
            .window(5, 45)
            .thread(
                "t",
                {{"s", 0, 10, {}, kBeganBefore}, {"s", 10, 10}, {"s", 20, 12}, {"s", 40, 5, {}, kUnfinished}})
            .trace(),
        {.name = "s"});
    ASSERT_EQ(report.steps.size(), 4u);
    EXPECT_TRUE(report.steps[0].is_partial);
    EXPECT_EQ(report.steps[0].duration_ns, 5);
    EXPECT_FALSE(report.steps[1].is_partial);
    EXPECT_TRUE(report.steps[3].is_partial);
    EXPECT_EQ(report.durations.count, 2u);
    EXPECT_EQ(report.durations.max_ns, 12);
}

TEST(StepsTest, SlowOnesAreComparedWithTheMedianOneNameByName) {
    const Trace trace =
        TraceFixture()
            .thread("main",
                    {{"loop",
                      0,
                      1000,
                      {{"ProfilerStep#0", 0, 100, {{"load", 0, 40}, {"run", 40, 50}}},
                       {"ProfilerStep#1", 100, 110, {{"load", 100, 40}, {"run", 140, 50, {{"k", 150, 9}}}}},
                       {"ProfilerStep#2", 300, 300, {{"load", 300, 230}, {"run", 530, 55}}}}}})
            .thread("worker", {{"busy", 90, 50}, {"busy", 350, 400, {{"busy", 360, 20}, {"copy", 400, 300}}}})
            .trace();
    const StepReport report = step_report(trace);
    EXPECT_EQ(report.median_step, 1u);
    ASSERT_EQ(report.slowest.size(), 1u);  // no other step is slower than the median
    EXPECT_EQ(report.slowest[0].step, 2u);
    EXPECT_EQ(drawing(report.slowest[0], StepPlace::Inside),
              "load 230 40\n"
              "run 55 50\n"
              "(rest) 15 20\n"
              "k 0 9\n");
    EXPECT_EQ(drawing(report.slowest[0], StepPlace::OtherThreads), "busy 250 40\ncopy 200 0\n");
    EXPECT_EQ(drawing(report.slowest[0], StepPlace::Devices), "");
    const auto busy =
        std::find_if(report.slowest[0].differences.begin(), report.slowest[0].differences.end(),
                     [](const StepDifference& difference) { return difference.name == "busy"; });
    EXPECT_EQ(busy->slow.count, 2u);
    EXPECT_EQ(busy->slow.self_ns, 50);  // 250 without 200 in copy
    EXPECT_EQ(busy->median.self_ns, 40);
}

TEST(StepsTest, ThatEndedOutOfOrderAreComparedByTimeToo) {
    const Trace trace = TraceFixture()
                            .thread("main", {{"loop", 0, 1000, {{"load", 10, 40}, {"load", 300, 150}}}})
                            .async("async", {{"ProfilerStep#0", 0, 100, {}, kAsync},
                                             {"ProfilerStep#1", 300, 200, {}, kAsync}})
                            .trace();
    const StepReport report = step_report(trace);
    ASSERT_EQ(report.slowest.size(), 1u);
    EXPECT_EQ(drawing(report.slowest[0], StepPlace::Inside), "load 150 40\n(rest) 50 60\n");
}

TEST(StepsTest, MayBeNoneOrOne) {
    EXPECT_TRUE(step_report(Trace()).steps.empty());
    const StepReport one = step_report(TraceFixture().thread("t", {{"ProfilerStep#0", 0, 10}}).trace());
    EXPECT_EQ(one.durations.count, 1u);
    EXPECT_EQ(one.durations.stdev_ns, 0);
    EXPECT_TRUE(one.slowest.empty());
}

TEST(StepsTest, TheContentOfAStepAgreesWithASearchOfAllRanges) {
    for (unsigned seed = 0; seed < 40; ++seed) {
        const Trace trace = testing::random_training_trace(seed);
        const StepReport report = step_report(trace, {.slowest = 10});
        const RangeColumns ranges = trace.ranges();
        for (const SlowStep& slow : report.slowest) {
            const StepInfo& step = report.steps[slow.step];
            std::map<std::pair<StepPlace, std::string>, StepWork> wanted;
            for (const TrackInfo& track : trace.tracks()) {
                if (track.kind == TrackKind::Async) continue;
                const StepPlace place = track.device.type == DeviceType::Cuda ? StepPlace::Devices
                                        : track.thread == step.thread         ? StepPlace::Inside
                                                                              : StepPlace::OtherThreads;
                for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
                    const std::string name(trace.range_name(row));
                    const std::int64_t from = std::max(ranges.start_ns[row], step.start_ns);
                    const std::int64_t end = step.start_ns + step.duration_ns;
                    const std::int64_t to = std::min(ranges.start_ns[row] + ranges.duration_ns[row], end);
                    const bool touches = ranges.start_ns[row] >= step.start_ns ? ranges.start_ns[row] < end
                                                                               : to > step.start_ns;
                    const bool is_around = place == StepPlace::Inside && row < step.range &&
                                           ranges.start_ns[row] <= step.start_ns && to == end;
                    if (!touches || is_around || name.starts_with("ProfilerStep")) continue;
                    ++wanted[{place, name}].count;
                    wanted[{place, name}].total_ns += to - from;
                }
            }
            std::map<std::pair<StepPlace, std::string>, StepWork> got;
            for (const StepDifference& difference : slow.differences) {
                if (!difference.is_rest && difference.slow.count > 0)
                    got[{difference.place, difference.name}] = difference.slow;
            }
            ASSERT_EQ(got.size(), wanted.size()) << seed;
            for (const auto& [key, work] : wanted) {
                EXPECT_EQ(got[key].count, work.count) << seed << " " << key.second;
                EXPECT_LE(got[key].total_ns, work.total_ns) << seed << " " << key.second;  // recursion
            }
        }
    }
}

}  // namespace
}  // namespace marey
