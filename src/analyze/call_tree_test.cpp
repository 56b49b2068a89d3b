// call_tree_test.cpp: the merged call tree, and what recording cost.
#include <gtest/gtest.h>

#include <kymo/analyze.h>

#include "analyze/trace_fixture.h"

namespace kymo {
namespace {

/// One line per node: indent, name, count, total, self.
std::string drawing(const CallTree& tree) {
    std::string text;
    for (const CallTreeNode& node : tree.nodes) {
        text += std::string(node.depth * 2, ' ') + node.name + " " + std::to_string(node.count) + " " +
                std::to_string(node.total_ns) + " " + std::to_string(node.self_ns) + "\n";
    }
    return text;
}

TEST(CallTreeTest, SamePathsMergeOverThreadsAndTheLargestComesFirst) {
    const CallTree tree =
        call_tree(TraceFixture()
                      .thread("one", {{"a", 0, 10, {{"b", 1, 2}, {"c", 4, 4}}}, {"a", 20, 5}})
                      .thread("two", {{"a", 0, 6, {{"b", 0, 3}}}, {"d", 10, 50}})
                      .trace());
    EXPECT_EQ(drawing(tree),
              "d 1 50 50\n"
              "a 3 21 12\n"
              "  b 2 5 5\n"
              "  c 1 4 4\n");
    EXPECT_EQ(tree.recorded_ns, 71);
    EXPECT_DOUBLE_EQ(tree.nodes[0].share, 50.0 / 71);
}

TEST(CallTreeTest, RecursionMakesAPathOfItsOwn) {
    const CallTree tree =
        call_tree(TraceFixture().thread("t", {{"f", 0, 9, {{"f", 1, 5, {{"f", 2, 1}}}}}}).trace());
    EXPECT_EQ(drawing(tree), "f 1 9 4\n  f 1 5 4\n    f 1 1 1\n");
}

TEST(CallTreeTest, ByThreadTheRootsAreThreads) {
    const CallTree tree = call_tree(
        TraceFixture().thread("one", {{"a", 0, 10}}).thread("two", {{"a", 0, 30}}).thread("idle", {}).trace(),
        {.by_thread = true});
    EXPECT_EQ(drawing(tree), "two 0 30 0\n  a 1 30 30\none 0 10 0\n  a 1 10 10\n");
    EXPECT_TRUE(tree.nodes[0].is_thread);
    EXPECT_EQ(tree.nodes[1].thread, 1u);
}

TEST(CallTreeTest, AsyncRootsComeLastAndCountInNoSum) {
    for (const bool by_thread : {false, true}) {
        const CallTree tree =
            call_tree(TraceFixture().thread("t", {{"a", 0, 10}}).async("t (async)", {{"a", 0, 500}}).trace(),
                      {by_thread});
        EXPECT_EQ(drawing(tree),
                  by_thread ? "t 0 10 0\n  a 1 10 10\n  a 1 500 500\n" : "a 1 10 10\na 1 500 500\n");
        EXPECT_TRUE(tree.nodes.back().is_async);
        EXPECT_EQ(tree.recorded_ns, 10);
    }
}

TEST(CallTreeTest, ParentsStandBeforeTheirChildren) {
    std::vector<RangeSpec> ranges;
    for (int i = 0; i < 2000; ++i)
        ranges.push_back(
            {"r" + std::to_string(i % 97), i * 100, 90, {{"c" + std::to_string(i % 31), i * 100, 20}}});
    const CallTree tree = call_tree(TraceFixture().thread("t", ranges).trace());
    std::uint64_t count = 0;
    for (std::uint32_t i = 0; i < tree.nodes.size(); ++i) {
        count += tree.nodes[i].count;
        if (tree.nodes[i].parent == kNoRow) continue;
        ASSERT_LT(tree.nodes[i].parent, i);
        EXPECT_EQ(tree.nodes[i].depth, tree.nodes[tree.nodes[i].parent].depth + 1);
    }
    EXPECT_EQ(count, 4000u);
    EXPECT_EQ(tree.recorded_ns, 2000 * 90);
}

TEST(CallTreeTest, AnEmptyTraceHasAnEmptyTree) {
    EXPECT_TRUE(call_tree(Trace()).nodes.empty());
}

TEST(OverheadTest, IsCostsTimesCountsAndNamesTheBusiestThread) {
    TraceFixture fixture;
    fixture.window(0, 1000).thread("quiet", {{"a", 0, 10}}).thread("busy", {{"a", 0, 10}, {"b", 20, 10}});
    fixture.value("n", {}).instant("i", 5).counter("c", 6, 1.0);
    fixture.data().costs = {{"range", 10}, {"range_with_values", 40}, {"instant", 5}, {"counter", 7}};
    const Overhead overhead = estimate_overhead(fixture.trace());
    EXPECT_TRUE(overhead.known);
    EXPECT_DOUBLE_EQ(overhead.total_ns, 10 + 10 + 40 + 5 + 7);
    EXPECT_EQ(overhead.busiest_thread, 1u);
    EXPECT_DOUBLE_EQ(overhead.busiest_share, 62 / 1000.0);
}

TEST(OverheadTest, IsUnknownWithoutMeasuredCosts) {
    EXPECT_FALSE(estimate_overhead(TraceFixture().thread("t", {{"a", 0, 1}}).trace()).known);
}

}  // namespace
}  // namespace kymo
