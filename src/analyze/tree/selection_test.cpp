// selection_test.cpp: a part of a trace reports what the whole would report for that time.
#include <marey/selection.h>

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>

#include <marey/averages.h>

#include "analyze/trace_fixture.h"
#include "trace/random_trace_fixture.h"
#include "trace/trace_difference_fixture.h"

namespace marey {
namespace {

std::vector<std::string> names_of(const Trace& trace) {
    std::vector<std::string> names;
    for (Row row = 0; row < trace.ranges().size(); ++row) names.emplace_back(trace.range_name(row));
    return names;
}

using Names = std::vector<std::string>;

Trace two_threads() {
    return TraceFixture()
        .thread("main", {{"a", 0, 100, {{"b", 10, 20}, {"c", 40, 50, {{"d", 50, 10}}}}}, {"e", 110, 10}})
        .instant("tick", 45)
        .counter("size", 95, 7)
        .thread("other", {{"f", 0, 45}, {"g", 60, 10}})
        .trace();
}

TEST(Selection, KeepsTheRangesThatTouchTheTime) {
    const Trace part = select_ranges(two_threads(), {45, 60});
    EXPECT_EQ(names_of(part), (Names{"a", "c", "d"}));
    EXPECT_EQ(part.window().start_ns, 45);
    EXPECT_EQ(part.window().end_ns, 60);
    EXPECT_EQ(part.ranges().parent[1], 0u);
    EXPECT_EQ(part.ranges().parent[2], 1u);
    EXPECT_EQ(part.ranges().depth[2], 2u);
    EXPECT_EQ(part.tracks()[1].range_count, 0u) << "f ends at 45, g starts at 60";
    EXPECT_EQ(part.instants().size(), 1u);
    EXPECT_EQ(part.counters().size(), 0u);
}

TEST(Selection, ClipsSelfTimes) {
    const Trace part = select_ranges(two_threads(), {45, 60});
    EXPECT_EQ(part.ranges().self_ns[0], 0) << "c covers a";
    EXPECT_EQ(part.ranges().self_ns[1], 5);
    EXPECT_EQ(part.ranges().self_ns[2], 10);
}

TEST(Selection, KeepsOnlyTheChosenTracks) {
    const Trace part = select_ranges(two_threads(), {0, 120, {1}});
    EXPECT_EQ(names_of(part), (Names{"f", "g"}));
    EXPECT_EQ(part.tracks().size(), 2u);
    EXPECT_EQ(part.instants().size(), 0u) << "it is on the other thread";
}

TEST(Selection, KeepsLinksBetweenItsRangesOnly) {
    TraceFixture fixture;
    fixture.thread("main", {{"a", 0, 10}, {"b", 20, 10}}).thread("other", {{"c", 0, 10}, {"d", 20, 10}});
    fixture.data().links = {{0, 2, LinkKind::Flow, 0}, {0, 3, LinkKind::Flow, 0}, {1, 3, LinkKind::Flow, 0}};
    const Trace part = select_ranges(fixture.trace(), {20, 30});
    EXPECT_EQ(names_of(part), (Names{"b", "d"}));
    ASSERT_EQ(part.links().size(), 1u);
    EXPECT_EQ(part.links()[0].from, 0u);
    EXPECT_EQ(part.links()[0].to, 1u);
}

TEST(Selection, GivesAChildOfAParentThatEndsWithTheSelectionsBeginToTheRangeAround) {
    const Trace trace =
        TraceFixture().thread("main", {{"a", 0, 100, {{"b", 0, 50, {{"c", 50, 0}}}}}}).trace();
    const Trace part = select_ranges(trace, {50, 60});
    EXPECT_EQ(names_of(part), (Names{"a", "c"}));
    EXPECT_EQ(part.ranges().parent[1], 0u);
    EXPECT_EQ(part.ranges().depth[1], 1u);
}

TEST(Selection, MayBeEmptyOrEverything) {
    const Trace trace = two_threads();
    EXPECT_EQ(select_ranges(trace, {500, 600}).ranges().size(), 0u);
    EXPECT_EQ(select_ranges(trace, {30, 30}).ranges().size(), 2u) << "a and f are open";
    EXPECT_EQ(names_of(select_ranges(trace, {0, 120})), names_of(trace));
    EXPECT_TRUE(selects_everything(trace, {0, 120}));
    EXPECT_FALSE(selects_everything(trace, {1, 120}));
    EXPECT_FALSE(selects_everything(trace, {0, 120, {1}}));
    EXPECT_EQ(select_ranges(Trace(), {0, 10}).ranges().size(), 0u);
}

/// Random nested ranges; times may be equal and durations zero.
std::vector<RangeSpec> random_ranges(std::mt19937& random, std::int64_t begin, std::int64_t end, int levels) {
    std::vector<RangeSpec> ranges;
    for (std::int64_t at = begin; at < end && ranges.size() < 6;) {
        const std::int64_t start = at + random() % 5;
        const std::int64_t stop = std::min<std::int64_t>(end, start + random() % 40);
        if (start > end) break;
        ranges.push_back({std::string(1, static_cast<char>('a' + random() % 6)), start, stop - start});
        if (levels > 0) ranges.back().inside = random_ranges(random, start, stop, levels - 1);
        at = stop;
    }
    return ranges;
}

TEST(Selection, OfAllTimeHasEveryColumnOfEveryTable) {
    for (unsigned seed = 0; seed < 50; ++seed) {
        const Trace whole = testing::random_trace(seed);
        constexpr std::int64_t kLongest = std::numeric_limits<std::int64_t>::max() / 4;
        TraceData part = select_ranges(whole, {-kLongest, kLongest}).data();
        part.window = whole.window();
        part.range_self_ns = whole.data().range_self_ns;  // were clipped to the window
        EXPECT_EQ(testing::find_difference(part, whole.data()), "") << seed;
    }
}

TEST(Selection, HasTheSelfTimesThatABruteForceCountFinds) {
    std::mt19937 random(7);
    for (int round = 0; round < 100; ++round) {
        const Trace trace = TraceFixture()
                                .window(0, 200)
                                .thread("main", random_ranges(random, 0, 200, 4))
                                .thread("other", random_ranges(random, 0, 200, 2))
                                .trace();
        const auto begin = static_cast<std::int64_t>(random() % 200);
        const auto end = begin + static_cast<std::int64_t>(random() % 100);
        std::map<std::string, std::int64_t> expected;  // per name: time in which it is innermost
        const RangeColumns ranges = trace.ranges();
        for (const TrackInfo& track : trace.tracks()) {
            for (std::int64_t time = begin; time < end; ++time) {
                Row innermost = kNoRow;
                for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
                    if (ranges.start_ns[row] <= time && time < ranges.start_ns[row] + ranges.duration_ns[row])
                        innermost = row;  // pre-order: the last is the innermost
                }
                if (innermost != kNoRow) ++expected[std::string(trace.range_name(innermost))];
            }
        }
        std::map<std::string, std::int64_t> found;
        const Averages averages = key_averages(select_ranges(trace, {begin, end}), {.merge_repeated = false});
        for (const AverageRow& row : averages.rows) {
            if (row.self_cpu_time_total_ns != 0) found[row.name] = row.self_cpu_time_total_ns;
        }
        EXPECT_EQ(found, expected) << "round " << round << ", " << begin << " to " << end;
    }
}

}  // namespace
}  // namespace marey
