// event_list_test.cpp: order, nesting and costs of events, and the position of allocations in the tree.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include <marey/analyze.h>
#include <marey/assemble.h>
#include <marey/event_list.h>

#include "analyze/trace_fixture.h"

namespace marey {
namespace {

std::vector<std::string> names(const EventList& events) {
    std::vector<std::string> result;
    for (std::size_t i = 0; i < events.size(); ++i) {
        result.emplace_back(events.range(i) == kNoRow ? "[memory]"
                                                      : events.trace().range_name(events.range(i)));
    }
    return result;
}

TEST(EventList, IsInTimeOrderAcrossThreads) {
    const EventList events(TraceFixture()
                               .thread("main", {{"a", 0, 100, {{"b", 10, 20}}}, {"c", 200, 10}})
                               .thread("other", {{"x", 5, 50}, {"y", 150, 10}})
                               .trace());
    EXPECT_EQ(names(events), (std::vector<std::string>{"a", "x", "b", "y", "c"}));
    EXPECT_EQ(events.parent(2), 0u);
    EXPECT_EQ(events.parent(1), kNoRow);
    ASSERT_EQ(events.children(0).size(), 1u);
    EXPECT_EQ(events.children(0)[0], 2u);
    EXPECT_EQ(events.self_ns(0), 80);
}

TEST(EventList, ARepeatedRangeIsMergedIntoItsParent) {
    const EventList events(TraceFixture()
                               .thread("main", {{"a", 0, 100, {{"a", 10, 80, {{"b", 20, 5}, {"c", 30, 5}}}}}})
                               .trace());
    EXPECT_EQ(names(events), (std::vector<std::string>{"a", "b", "c"}));
    EXPECT_EQ(events.self_ns(0), 90);
    EXPECT_EQ(events.parent(1), 0u);
    EXPECT_EQ(events.parent(2), 0u);
    EXPECT_EQ(events.children(0).size(), 2u);
    EXPECT_EQ(events.event_of(1), 0u);
}

// K17
TEST(EventList, AStepThatCrossesRangesIsTheParentOfTheOnesInIt) {
    const EventList events(
        TraceFixture()
            .thread("main", {{"fit",
                              0,
                              900,
                              {{"one", 10, 100, {{"forward", 10, 30}, {"backward", 60, 30}}},
                               {"load", 150, 20},
                               {"two", 200, 100, {{"forward", 210, 30}}}}}})
            .async("main async", {{"ProfilerStep#1", 50, 200, {}, kAsync}, {"request", 400, 5, {}, kAsync}})
            .trace());
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < events.size(); ++i) {
        const std::uint32_t parent = events.parent(i);
        lines.push_back(names(events)[i] + " in " + (parent == kNoRow ? "-" : names(events)[parent]) +
                        " self " + std::to_string(events.self_ns(i)) + (events.is_async(i) ? " async" : ""));
    }
    EXPECT_EQ(lines, (std::vector<std::string>{"fit in - self 500", "one in fit self 70",
                                               "forward in one self 30", "ProfilerStep#1 in fit self 150",
                                               "backward in ProfilerStep#1 self 30",
                                               "load in ProfilerStep#1 self 20", "two in fit self 70",
                                               "forward in two self 30", "request in - self 0 async"}));
    EXPECT_EQ(events.children(3).size(), 2u);
    EXPECT_EQ(events.children(0).size(), 3u);
}

// Lightning's last step ends in a range that is still open when the session stops.
TEST(EventList, ARangeThatIsOpenAtTheStopHidesNoneOfTheRangesInItFromTheStep) {
    const EventList events(
        TraceFixture()
            .thread("main",
                    {{"fit", 0, 900, {{"forward", 60, 40}, {"outlives", 110, 500, {{"its", 120, 10}}}}, 0},
                     {"exit", 950, 50, {{"training", 960, 20, {{"linear", 965, 5}}}}, kUnfinished}})
            .async("main async",
                   {{"ProfilerStep#1", 50, 200, {}, kAsync}, {"ProfilerStep#2", 940, 50, {}, kAsync}})
            .trace());
    const std::vector<std::string> all = names(events);
    const auto parent_of = [&](const char* name) {
        const auto event = static_cast<std::size_t>(std::find(all.begin(), all.end(), name) - all.begin());
        return events.parent(event) == kNoRow ? "-" : all[events.parent(event)];
    };
    EXPECT_EQ(parent_of("forward"), "ProfilerStep#1");
    EXPECT_EQ(parent_of("its"), "outlives");
    EXPECT_EQ(parent_of("training"), "ProfilerStep#2");
    EXPECT_EQ(parent_of("linear"), "training");
    const auto exit = static_cast<std::size_t>(std::find(all.begin(), all.end(), "exit") - all.begin());
    EXPECT_TRUE(events.is_async(exit));
    EXPECT_EQ(events.self_ns(exit), 0);
    EXPECT_TRUE(events.children(exit).empty());
}

TEST(EventList, TimesAreRelativeToTheWindowAndClipped) {
    const EventList events(
        TraceFixture().window(50, 90).thread("main", {{"a", 40, 20}, {"b", 70, 40}}).trace());
    EXPECT_EQ(events.start_ns(0), 0);
    EXPECT_EQ(events.duration_ns(0), 10);
    EXPECT_EQ(events.start_ns(1), 20);
    EXPECT_EQ(events.duration_ns(1), 20);
}

TEST(EventList, FindsTheWorkThatACallLaunched) {
    std::vector<DescribedEvent> described(2);
    described[0].name = "call";
    described[0].duration_ns = 100;
    described[1].name = "inside";
    described[1].start_ns = 10;
    described[1].duration_ns = 20;
    described[1].kernels = {{"k", 0, 15}};
    const EventList events(assemble_trace(described).trace);
    ASSERT_EQ(events.size(), 3u);
    EXPECT_EQ(names(events), (std::vector<std::string>{"call", "inside", "k"}));
    EXPECT_EQ(events.device_total_ns(0), 15);
    EXPECT_TRUE(events.launches(0).empty());
    ASSERT_EQ(events.launches(1).size(), 1u);
    EXPECT_EQ(events.launches(1)[0], events.range(2));
    EXPECT_EQ(events.launch(2), events.range(1));
    EXPECT_EQ(events.device_total_ns(2), 15);
    ASSERT_TRUE(events.flow(1));
    EXPECT_TRUE(events.flow(1)->is_start);
    ASSERT_TRUE(events.flow(2));
    EXPECT_FALSE(events.flow(2)->is_start);
    EXPECT_EQ(events.category(2), "kernel");
}

TEST(EventList, HasTheRowsOfListRanges) {
    std::mt19937 random(7);
    for (int round = 0; round < 50; ++round) {
        std::vector<DescribedEvent> described(random() % 40);
        for (DescribedEvent& event : described) {
            event.name = std::string(1, static_cast<char>('a' + random() % 3));
            event.start_ns = random() % 50;
            event.duration_ns = random() % 30;
            event.thread = 1 + random() % 2;
            event.is_async = random() % 8 == 0;
            event.cpu_bytes = random() % 3 == 0 ? random() % 100 : 0;
            if (random() % 4 == 0) event.kernels = {{"k", 0, static_cast<std::int64_t>(random() % 20)}};
        }
        const Trace trace = assemble_trace(described).trace;
        const EventList events(trace);
        const Averages list = list_ranges(trace);
        ASSERT_EQ(events.size(), list.rows.size());
        for (std::size_t i = 0; i < events.size(); ++i) {
            const AverageRow& row = list.rows[i];
            EXPECT_EQ(events.range(i), row.first_range);
            EXPECT_EQ(events.self_ns(i), row.self_cpu_time_total_ns);
            EXPECT_EQ(events.device_total_ns(i), row.device_time_total_ns);
            EXPECT_EQ(events.bytes(i).cpu, row.cpu_memory_bytes);
            EXPECT_EQ(events.bytes(i).self_cpu, row.self_cpu_memory_bytes);
            EXPECT_EQ(events.parent(i) == kNoRow, row.is_top_level);
            for (const std::uint32_t child : events.children(i)) EXPECT_EQ(events.parent(child), i);
        }
    }
}

TEST(GroupRows, GroupsListedRangesAsKeyAveragesDoes) {
    const Trace trace = TraceFixture()
                            .thread("main", {{"a", 0, 100, {{"b", 10, 20}}}, {"b", 200, 10}, {"a", 300, 1}})
                            .trace();
    const Averages grouped = group_rows(list_ranges(trace));
    const Averages wanted = key_averages(trace);
    ASSERT_EQ(grouped.rows.size(), wanted.rows.size());
    for (std::size_t i = 0; i < grouped.rows.size(); ++i) {
        EXPECT_EQ(grouped.rows[i].name, wanted.rows[i].name);
        EXPECT_EQ(grouped.rows[i].count, wanted.rows[i].count);
        EXPECT_EQ(grouped.rows[i].cpu_time_total_ns, wanted.rows[i].cpu_time_total_ns);
        EXPECT_EQ(grouped.rows[i].self_cpu_time_total_ns, wanted.rows[i].self_cpu_time_total_ns);
        EXPECT_EQ(grouped.rows[i].min_ns, wanted.rows[i].min_ns);
        EXPECT_EQ(grouped.rows[i].max_ns, wanted.rows[i].max_ns);
    }
    EXPECT_EQ(grouped.recorded_ns, wanted.recorded_ns);
}

TEST(GroupRows, StacksShapesAndOverloadsSplitGroupsOnlyWhenRequested) {
    Averages list;
    list.is_list = true;
    for (const char* overload : {"x", "y", "x"}) {
        AverageRow& row = list.rows.emplace_back();
        row.name = "op";
        row.overload = overload;
        row.input_shapes = "[[1]]";
        row.stack = {overload, "main"};
        row.count = 1;
    }
    EXPECT_EQ(group_rows(list).rows.size(), 1u);
    EXPECT_TRUE(group_rows(list).rows[0].overload.empty());
    EXPECT_TRUE(group_rows(list).rows[0].stack.empty());
    EXPECT_EQ(group_rows(list, {.by_overload = true}).rows.size(), 2u);
    EXPECT_EQ(group_rows(list, {.by_input_shape = true}).rows.size(), 1u);
    const Averages by_stack = group_rows(list, {.stack_entries = 1});
    ASSERT_EQ(by_stack.rows.size(), 2u);
    EXPECT_EQ(by_stack.rows[1].first_range, 1u);
    EXPECT_EQ(by_stack.rows[0].stack, std::vector<std::string>{"x"});
    list.rows[2].is_legacy = true;
    EXPECT_EQ(group_rows(list).rows.size(), 2u);
}

TEST(EventTree, HoldsAllocationsUnderTheRangeThatWasOpen) {
    std::vector<DescribedEvent> described(3);
    described[0].name = "outer";
    described[0].duration_ns = 100;
    described[1].name = "outer";  // a repetition is a separate node here
    described[1].start_ns = 10;
    described[1].duration_ns = 20;
    described[1].cpu_bytes = 64;
    described[2].name = "later";
    described[2].start_ns = 200;
    described[2].duration_ns = 1;
    const AssembledTrace made = assemble_trace(described);
    const EventTree tree(made.trace);
    ASSERT_EQ(tree.size(), 4u);
    ASSERT_EQ(tree.roots().size(), 2u);
    EXPECT_EQ(tree.roots()[0], made.row_of[0]);
    ASSERT_EQ(tree.children(made.row_of[0]).size(), 1u);
    ASSERT_EQ(tree.children(made.row_of[1]).size(), 1u);
    EXPECT_EQ(tree.children(made.row_of[1])[0], 3u);
    EXPECT_EQ(tree.parent(3), made.row_of[1]);
}

}  // namespace
}  // namespace marey
