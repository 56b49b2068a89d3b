// trace_assembler_test.cpp: events in any order become tracks that nest.
#include "trace/trace_assembler.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace marey {
namespace {

class TraceAssemblerTest : public ::testing::Test {
  protected:
    TraceAssemblerTest() {
        assembler_.add_process({});
        ThreadInfo thread;
        thread.id = 1;
        thread.name = assembler_.string("main");
        assembler_.add_thread(thread);
        lane_ = assembler_.add_lane({});
    }
    TraceAssembler::RangeId add(std::int64_t start, std::int64_t end, const char* name = "r") {
        return add_to(lane_, start, end, name);
    }
    TraceAssembler::RangeId add_to(std::uint32_t lane, std::int64_t start, std::int64_t end,
                                   const char* name = "r") {
        SiteInfo site;
        site.name = assembler_.string(name);
        return assembler_.add_range(lane, start, end - start, assembler_.site(site));
    }
    /// "[1,3]>[1,2]": the edges, as parent and child.
    static std::string edges(const Trace& trace) {
        const RangeColumns ranges = trace.ranges();
        const auto text = [&](Row row) {
            return "[" + std::to_string(ranges.start_ns[row]) + "," +
                   std::to_string(ranges.start_ns[row] + ranges.duration_ns[row]) + "]";
        };
        std::string all;
        for (Row row = 0; row < ranges.size(); ++row) {
            if (ranges.parent[row] != kNoRow)
                all += (all.empty() ? "" : " ") + text(ranges.parent[row]) + ">" + text(row);
        }
        return all;
    }

    TraceAssembler assembler_;
    std::uint32_t lane_ = 0;
};

TEST_F(TraceAssemblerTest, AnArrowFindsItsRangesByPlaceAndTime) {
    using End = TraceAssembler::LinkEnd;
    add(0, 100, "outer");
    add(10, 50, "inner");
    add(20, 120, "crossing");  // on a separate track
    const auto last = add(200, 210, "last");
    add(300, 310, "later");
    const auto at = [&](std::int64_t time, bool is_next = false) {
        return End{End::kNoRange, lane_, time, is_next};
    };
    const End known{last, 0, 0, false};
    assembler_.add_link(at(5), known, LinkKind::Flow);
    assembler_.add_link(at(15), known, LinkKind::Flow);
    assembler_.add_link(at(30), known, LinkKind::Flow);
    assembler_.add_link(at(120), at(211, true), LinkKind::Flow);
    assembler_.add_link(at(150), known, LinkKind::Flow);        // nothing is open
    assembler_.add_link(at(5), at(311, true), LinkKind::Flow);  // nothing follows
    const Trace trace = assembler_.finish();
    std::string text;
    for (const LinkInfo& link : trace.links())
        text += std::string(trace.range_name(link.from)) + ">" + std::string(trace.range_name(link.to)) + " ";
    EXPECT_EQ(text, "outer>last inner>last crossing>last crossing>later ");
    ASSERT_EQ(trace.problems().size(), 1u);
    EXPECT_EQ(trace.problems()[0].code, "loose_arrow");
    EXPECT_EQ(trace.problems()[0].count, 2u);
}

TEST_F(TraceAssemblerTest, TheExpectedSizeChangesNothing) {
    for (int i = 0; i < 10'000; ++i) {
        add(i, i + 1);
        if (i % 1000 == 0) assembler_.expect(i / 10'000.0);
    }
    assembler_.expect(0);
    assembler_.expect(1);
    EXPECT_EQ(assembler_.finish().ranges().size(), 10'000u);
}

TEST_F(TraceAssemblerTest, ASymbolGetsAReadableNameAndIsKeptBesideIt) {
    const SiteInfo plain = assembler_.named("aten::add");
    const SiteInfo symbol = assembler_.named("_Z3addii");
    const SiteInfo damaged = assembler_.named("_Z3ad");
    EXPECT_EQ(assembler_.named("_Z3addii"), symbol);
    EXPECT_EQ(plain.raw_name, 0u);
    EXPECT_EQ(damaged.raw_name, 0u);
    const Trace trace = assembler_.finish();
    EXPECT_EQ(trace.string(plain.name), "aten::add");
    EXPECT_EQ(trace.string(symbol.name), "add(int, int)");
    EXPECT_EQ(trace.string(symbol.raw_name), "_Z3addii");
    EXPECT_EQ(trace.string(damaged.name), "_Z3ad");
}

TEST_F(TraceAssemblerTest, NestsByTimesInWhateverOrderTheyCome) {
    add(5, 6);
    add(2, 8);
    add(0, 10);
    add(8, 9);
    const Trace trace = assembler_.finish();
    EXPECT_EQ(edges(trace), "[0,10]>[2,8] [2,8]>[5,6] [0,10]>[8,9]");
    EXPECT_EQ(trace.tracks().size(), 1u);
    EXPECT_EQ(trace.ranges().self_ns[0], 3);
    EXPECT_EQ(trace.ranges().depth[2], 2u);
    EXPECT_EQ(trace.window().end_ns, 10);
}

TEST_F(TraceAssemblerTest, ARangeThatOutlastsAnotherTakesItsPlace) {
    add(0, 2);
    add(1, 2);
    add(1, 3);
    const Trace trace = assembler_.finish();
    EXPECT_EQ(edges(trace), "[1,3]>[1,2]");
    ASSERT_EQ(trace.tracks().size(), 2u);
    EXPECT_EQ(trace.tracks()[0].kind, TrackKind::Thread);
    EXPECT_EQ(trace.tracks()[1].kind, TrackKind::Overlap);
    EXPECT_EQ(trace.string(trace.tracks()[1].name), "main overlapping");
    EXPECT_EQ(trace.ranges().flags[1], 0);
}

TEST_F(TraceAssemblerTest, SiblingsThatCrossKeepTheirParentOnAnotherTrack) {
    add(0, 100);
    add(10, 20);
    add(15, 25);
    add(16, 18);
    const Trace trace = assembler_.finish();
    EXPECT_EQ(edges(trace), "[0,100]>[10,20] [0,100]>[15,25] [15,25]>[16,18]");
    ASSERT_EQ(trace.tracks().size(), 2u);
    EXPECT_EQ(trace.ranges().depth[2], 0u);
    EXPECT_EQ(trace.ranges().depth[3], 1u);
    EXPECT_EQ(trace.ranges().self_ns[0], 80);
}

TEST_F(TraceAssemblerTest, AsyncRangesHaveNoParents) {
    const std::uint32_t lane = assembler_.add_lane({0, TrackKind::Async});
    add_to(lane, 0, 10);
    add_to(lane, 2, 3);
    add_to(lane, 11, 12);
    const Trace trace = assembler_.finish();
    EXPECT_EQ(edges(trace), "");
    ASSERT_EQ(trace.tracks().size(), 2u);
    EXPECT_EQ(trace.string(trace.tracks()[0].name), "main async");
    EXPECT_EQ(trace.string(trace.tracks()[1].name), "main async 2");
    EXPECT_EQ(trace.tracks()[0].range_count, 2u);
    EXPECT_EQ(trace.ranges().flags[0], kAsync);
}

TEST_F(TraceAssemblerTest, ValuesDetailsAndLinksFollowTheirRanges) {
    const auto inner = add(2, 3, "inner");
    const auto outer = add(0, 10, "outer");
    Argument number;
    number.kind = ValueKind::Int;
    number.integer = 1;
    assembler_.add_values(inner, {&number, 1});
    number.integer = 2;
    assembler_.add_values(outer, {&number, 1});
    number.integer = 3;
    assembler_.add_values(inner, {&number, 1});
    assembler_.add_detail(inner, 7, 0, 0);
    assembler_.add_link(inner, outer, LinkKind::Flow, assembler_.string("arrow"));
    const Trace trace = assembler_.finish();
    ASSERT_EQ(trace.range_arguments(0).size(), 1u);
    EXPECT_EQ(trace.range_arguments(0)[0].integer, 2);
    ASSERT_EQ(trace.range_arguments(1).size(), 2u);
    EXPECT_EQ(trace.range_arguments(1)[0].integer, 1);
    EXPECT_EQ(trace.range_arguments(1)[1].integer, 3);
    EXPECT_EQ(trace.range_detail(1)->sequence, 7);
    ASSERT_EQ(trace.links().size(), 1u);
    EXPECT_EQ(trace.links()[0].from, 1u);
    EXPECT_EQ(trace.links()[0].to, 0u);
}

TEST_F(TraceAssemblerTest, PointsAreSortedByThreadAndTimeWithTheirValues) {
    assembler_.add_thread({});
    Argument number;
    number.kind = ValueKind::Int;
    number.integer = 9;
    const std::uint32_t site = assembler_.site({});
    assembler_.add_instant(1, 5, site, {&number, 1});
    assembler_.add_instant(0, 7, site);
    assembler_.add_counter(0, 2, site, 2.0);
    assembler_.add_counter(0, 1, site, 1.0);
    const Trace trace = assembler_.finish();
    EXPECT_EQ(trace.instants().time_ns[0], 7);
    EXPECT_TRUE(trace.instant_arguments(0).empty());
    ASSERT_EQ(trace.instant_arguments(1).size(), 1u);
    EXPECT_EQ(trace.counters().value[0], 1.0);
    EXPECT_EQ(trace.window().start_ns, 1);
    EXPECT_EQ(trace.window().end_ns, 7);
}

TEST_F(TraceAssemblerTest, NegativeDurationsBecomeZeroAndAreCounted) {
    add(5, 3);
    const Trace trace = assembler_.finish();
    EXPECT_EQ(trace.ranges().duration_ns[0], 0);
    EXPECT_EQ(trace.threads()[0].clamped, 1u);
    ASSERT_EQ(trace.problems().size(), 1u);
    EXPECT_EQ(trace.problems()[0].code, "clamped");
    EXPECT_EQ(trace.problems()[0].count, 1u);
}

TEST_F(TraceAssemblerTest, EveryTrackNestsWhateverTheTimes) {
    for (unsigned seed = 0; seed < 50; ++seed) {
        std::mt19937 random(seed);
        TraceAssembler assembler;
        assembler.add_process({});
        assembler.add_thread({});
        const std::uint32_t lane = assembler.add_lane({});
        const std::uint32_t site = assembler.site({});
        const int count = static_cast<int>(random() % 60);
        for (int i = 0; i < count; ++i)
            assembler.add_range(lane, static_cast<std::int64_t>(random() % 40), random() % 12, site);
        const Trace trace = assembler.finish();
        const RangeColumns ranges = trace.ranges();
        ASSERT_EQ(ranges.size(), static_cast<std::size_t>(count));
        for (const TrackInfo& track : trace.tracks()) {
            std::vector<Row> open;
            for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
                const std::int64_t end = ranges.start_ns[row] + ranges.duration_ns[row];
                ASSERT_LE(ranges.depth[row], open.size());
                open.resize(ranges.depth[row]);
                if (!open.empty()) {
                    EXPECT_EQ(ranges.parent[row], open.back());
                    EXPECT_LE(end, ranges.start_ns[open.back()] + ranges.duration_ns[open.back()]);
                } else if (ranges.parent[row] != kNoRow) {
                    EXPECT_LT(ranges.parent[row], row);
                }
                const bool has_sibling =
                    row > track.first_range && ranges.depth[row - 1] >= ranges.depth[row];
                if (has_sibling) {
                    Row sibling = row - 1;
                    while (ranges.depth[sibling] != ranges.depth[row]) --sibling;
                    EXPECT_LE(ranges.start_ns[sibling] + ranges.duration_ns[sibling], ranges.start_ns[row]);
                }
                open.push_back(row);
            }
        }
    }
}

}  // namespace
}  // namespace marey
