// summary_test.cpp: counts, totals and percentiles by name.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include <kymo/analyze.h>

#include "analyze/trace_fixture.h"

namespace kymo {
namespace {

const SummaryRow& row(const Summary& summary, const std::string& name, Row thread = kNoRow) {
    for (const SummaryRow& candidate : summary.rows) {
        if (candidate.name == name && candidate.thread == thread) return candidate;
    }
    static const SummaryRow none;
    ADD_FAILURE() << "no row " << name;
    return none;
}

TEST(Summary, AnEmptyTraceHasNoRows) {
    const Summary summary = summarize(Trace());
    EXPECT_TRUE(summary.rows.empty());
    EXPECT_EQ(summary.recorded_ns, 0);
}

TEST(Summary, TotalHoldsTheChildrenAndSelfDoesNot) {
    const Summary summary = summarize(
        TraceFixture().thread("main", {{"load", 0, 100, {{"read", 10, 20}, {"parse", 40, 50}}}}).trace());
    EXPECT_EQ(row(summary, "load").total_ns, 100);
    EXPECT_EQ(row(summary, "load").self_ns, 30);
    EXPECT_EQ(row(summary, "parse").self_ns, 50);
    EXPECT_EQ(summary.recorded_ns, 100);
    EXPECT_EQ(summary.range_count, 3u);
}

TEST(Summary, TwiceFiveAndTenAverageToSevenAndAHalf) {
    const Summary summary = summarize(
        TraceFixture()
            .thread("main", {{"a", 0, 5000}, {"a", 5000, 10000}, {"a", 20000, 5000}, {"a", 30000, 10000}})
            .trace());
    EXPECT_EQ(row(summary, "a").count, 4u);
    EXPECT_EQ(row(summary, "a").total_ns, 30000);
    EXPECT_EQ(row(summary, "a").average_ns(), 7500.0);
    EXPECT_EQ(row(summary, "a").min_ns, 5000);
    EXPECT_EQ(row(summary, "a").max_ns, 10000);
}

TEST(Summary, RecursionCountsOnceInTotalAndEveryTimeInCount) {
    const Summary summary = summarize(
        TraceFixture()
            .thread("main", {{"f", 0, 100, {{"g", 10, 80, {{"f", 20, 30}, {"f", 60, 10}}}}}, {"f", 200, 50}})
            .trace());
    EXPECT_EQ(row(summary, "f").total_ns, 150);
    EXPECT_EQ(row(summary, "f").count, 4u);
    EXPECT_EQ(row(summary, "f").self_ns, 20 + 30 + 10 + 50);
    EXPECT_EQ(row(summary, "f").average_ns(), (100 + 30 + 10 + 50) / 4.0);
}

TEST(Summary, ARecursionThatEndsATrackDoesNotReachIntoTheNext) {
    const Summary summary = summarize(
        TraceFixture().thread("one", {{"f", 0, 100, {{"f", 10, 10}}}}).thread("two", {{"f", 0, 40}}).trace());
    EXPECT_EQ(row(summary, "f").total_ns, 140);
}

TEST(Summary, SitesOfOneNameAreOneRow) {
    TraceFixture fixture;
    fixture.thread("main", {{"a", 0, 10}, {"b", 20, 10}});
    fixture.data().sites.push_back({fixture.string("a"), fixture.string("other.cpp"), 7, Scope::Function});
    fixture.data().range_site[1] = 2;
    const Summary summary = summarize(fixture.trace());
    ASSERT_EQ(summary.rows.size(), 1u);
    EXPECT_EQ(row(summary, "a").count, 2u);
}

TEST(Summary, DurationsAreClippedToTheWindow) {
    const Summary summary =
        summarize(TraceFixture()
                      .window(100, 200)
                      .thread("main", {{"before", 50, 100, {{"child", 60, 60}}, kBeganBefore},
                                       {"after", 180, 100, {}, kUnfinished}})
                      .trace());
    EXPECT_EQ(row(summary, "before").total_ns, 50);
    EXPECT_EQ(row(summary, "before").self_ns, 30);
    EXPECT_EQ(row(summary, "child").max_ns, 20);
    EXPECT_EQ(row(summary, "after").total_ns, 20);
    EXPECT_EQ(row(summary, "after").unfinished, 1u);
    EXPECT_EQ(summary.window_ns, 100);
}

TEST(Summary, ByThreadSeparatesThreadsAndJoinsTheirTracks) {
    const Summary summary = summarize(TraceFixture()
                                          .thread("one", {{"a", 0, 10}, {"b", 20, 5}})
                                          .async("one (async)", {{"a", 5, 30}})
                                          .thread("two", {{"b", 0, 7}, {"a", 10, 1}})
                                          .trace(),
                                      {.by_thread = true});
    EXPECT_EQ(summary.rows.size(), 4u);
    EXPECT_EQ(row(summary, "a", 0).count, 2u);
    EXPECT_EQ(row(summary, "a", 0).total_ns, 40);
    EXPECT_EQ(row(summary, "a", 0).p50_ns, 10);
    EXPECT_EQ(row(summary, "b", 0).p50_ns, 5);
    EXPECT_EQ(row(summary, "b", 1).p99_ns, 7);
    EXPECT_EQ(row(summary, "a", 1).max_ns, 1);
}

TEST(Summary, AsyncRangesHaveNoSelfTimeAndTakeNoShare) {
    const Summary summary = summarize(
        TraceFixture().thread("t", {{"a", 0, 10}}).async("t (async)", {{"request", 0, 500}}).trace());
    EXPECT_EQ(row(summary, "request").total_ns, 500);
    EXPECT_EQ(row(summary, "request").self_ns, 0);
    EXPECT_EQ(row(summary, "request").async, 1u);
    EXPECT_EQ(summary.recorded_ns, 10);
}

TEST(Summary, PercentilesAreNearestRank) {
    std::vector<RangeSpec> ranges;
    for (int i = 1; i <= 200; ++i)
        ranges.push_back({"a", i * 1000, i * 37 % 201});  // every length from 1 to 200
    const Summary summary = summarize(TraceFixture().thread("main", ranges).trace());
    EXPECT_EQ(row(summary, "a").p50_ns, 100);
    EXPECT_EQ(row(summary, "a").p99_ns, 198);
}

TEST(Summary, AgreesWithAPlainCountOverRandomTraces) {
    std::mt19937 random(3);
    for (int round = 0; round < 50; ++round) {
        TraceFixture fixture;
        std::map<std::pair<std::string, Row>, std::vector<std::int64_t>> expected;
        for (Row thread = 0; thread < 3; ++thread) {
            std::vector<RangeSpec> ranges;
            std::int64_t now = 0;
            for (int i = 0; i < 60; ++i) {
                const std::string name(1, static_cast<char>('a' + random() % 5));
                const std::int64_t duration = random() % 50;
                ranges.push_back({name, now, duration});
                now += duration + random() % 3;
                expected[{name, thread}].push_back(duration);
            }
            fixture.thread("t", ranges);
        }
        const Summary summary = summarize(fixture.trace(), {.by_thread = true});
        EXPECT_EQ(summary.rows.size(), expected.size());
        for (auto& [key, durations] : expected) {
            std::sort(durations.begin(), durations.end());
            const SummaryRow& found = row(summary, key.first, key.second);
            EXPECT_EQ(found.count, durations.size());
            EXPECT_EQ(found.min_ns, durations.front());
            EXPECT_EQ(found.max_ns, durations.back());
            EXPECT_EQ(found.p50_ns, durations[(durations.size() + 1) / 2 - 1]);
            EXPECT_EQ(found.p99_ns, durations[(durations.size() * 99 + 99) / 100 - 1]);
        }
    }
}

}  // namespace
}  // namespace kymo
