// call_tree_test.cpp: the merged call tree, and the recording overhead.
#include <gtest/gtest.h>

#include <map>

#include <marey/analyze.h>
#include <marey/error.h>

#include "analyze/trace_fixture.h"
#include "trace/random_trace_fixture.h"

namespace marey {
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

TEST(CallTreeTest, SamePathsMergeAcrossThreadsAndTheLargestComesFirst) {
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

TEST(CallTreeTest, RecursionMakesASeparatePath) {
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

TEST(CallTreeTest, AsyncRootsComeLastAndAreNotPartOfAnySum) {
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

TEST(CallTreeTest, ParentsComeBeforeTheirChildren) {
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

/// A thread with a range that overlaps its neighbour, and a device stream.
Trace overlapping_trace() {
    TraceAssembler assembler;
    assembler.add_process({});
    ThreadInfo thread;
    thread.id = 1;
    thread.os_tid = 11;
    thread.name = assembler.string("main");
    Lane host;
    host.thread = assembler.add_thread(thread);
    thread.id = 2;
    thread.os_tid = 0;
    thread.name = assembler.string("cuda:0 stream 7");
    Lane device;
    device.thread = assembler.add_thread(thread);
    device.kind = TrackKind::Device;
    device.device = {DeviceType::Cuda, 0};
    const std::uint32_t host_lane = assembler.add_lane(host), device_lane = assembler.add_lane(device);
    const auto site = [&](const char* name, Scope scope = Scope::Function) {
        return assembler.site({assembler.string(name), 0, 0, scope});
    };
    assembler.add_range(host_lane, 0, 100, site("outer"));
    assembler.add_range(host_lane, 10, 30, site("left"));
    assembler.add_range(host_lane, 30, 40, site("right"));  // crosses "left"
    assembler.add_range(host_lane, 50, 10, site("inner"));
    assembler.add_range(device_lane, 20, 200, site("kernel", Scope::Device));
    assembler.add_range(device_lane, 30, 300, site("kernel", Scope::Device));
    assembler.add_range(device_lane, 400, 50, site("outer", Scope::Device));
    return assembler.finish();
}

TEST(CallTreeTest, OverlappingRangesAreBelowTheirParents) {
    const Trace trace = overlapping_trace();
    ASSERT_EQ(trace.tracks().size(), 4u);
    const CallTree tree = call_tree(trace);
    EXPECT_EQ(drawing(tree),
              "outer 1 100 30\n"
              "  right 1 40 30\n"
              "    inner 1 10 10\n"
              "  left 1 30 30\n"
              "kernel 2 500 500\n"
              "outer 1 50 50\n");
}

TEST(CallTreeTest, DeviceWorkHasSeparateRootsAndASeparateTotal) {
    const CallTree tree = call_tree(overlapping_trace());
    EXPECT_EQ(tree.recorded_ns, 100);
    EXPECT_EQ(tree.device_ns, 550);
    EXPECT_FALSE(tree.nodes[0].is_device);
    EXPECT_TRUE(tree.nodes[4].is_device);
    EXPECT_DOUBLE_EQ(tree.nodes[4].share, 500 / 550.0);
    EXPECT_TRUE(tree.nodes[5].is_device);
}

/// A device stream with annotations: around two kernels, with exactly the times of a kernel, and overlapping
/// one.
Trace annotated_trace() {
    TraceAssembler assembler;
    assembler.add_process({});
    ThreadInfo thread;
    thread.id = 1;
    thread.name = assembler.string("stream 7");
    Lane lane{assembler.add_thread(thread), TrackKind::Device, {DeviceType::Cuda, 0}, 7, 0};
    const std::uint32_t queue = assembler.add_lane(lane);
    const auto add = [&](const char* name, Scope scope, std::int64_t start, std::int64_t duration) {
        assembler.add_range(queue, start, duration, assembler.site({assembler.string(name), 0, 0, scope}));
    };
    add("forward", Scope::User, 0, 100);
    add("gemm", Scope::Device, 10, 30);
    add("relu", Scope::Device, 50, 20);
    add("copy", Scope::Device, 200, 40);
    add("load", Scope::User, 200, 40);  // inside the copy, judging by the times
    add("crossing", Scope::User, 220, 60);
    return assembler.finish();
}

TEST(CallTreeTest, AnnotationsOnADeviceHaveNoTimeBeyondTheWorkTheyCover) {
    const CallTree tree = call_tree(annotated_trace());
    EXPECT_EQ(drawing(tree),
              "forward 1 100 0\n"
              "  gemm 1 30 30\n"
              "  relu 1 20 20\n"
              "crossing 1 60 0\n"
              "copy 1 40 40\n"
              "  load 1 40 0\n");
    EXPECT_EQ(tree.device_ns, 30 + 20 + 40);
    EXPECT_DOUBLE_EQ(tree.nodes[1].share, 30 / 90.0);
    EXPECT_EQ(call_tree(annotated_trace(), {.by_thread = true}).nodes[0].total_ns, 90);
    EXPECT_EQ(call_tree(annotated_trace(), {.inside = "forward"}).device_ns, 50);
    EXPECT_EQ(call_tree(annotated_trace(), {.bottom_up = true}).device_ns, 90);
}

TEST(CallTreeTest, BottomUpEveryNameIsARootWithItsCallersBelow) {
    const CallTree tree = call_tree(
        TraceFixture()
            .thread("t", {{"a", 0, 100, {{"x", 10, 30, {{"y", 10, 5}}}}}, {"b", 100, 50, {{"x", 100, 20}}}})
            .trace(),
        {.bottom_up = true});
    EXPECT_EQ(drawing(tree),
              "a 1 100 70\n"
              "x 2 50 45\n"
              "  a 1 30 25\n"
              "  b 1 20 20\n"
              "b 1 50 30\n"
              "y 1 5 5\n"
              "  x 1 5 5\n"
              "    a 1 5 5\n");
    EXPECT_DOUBLE_EQ(tree.nodes[1].share, 45 / 150.0);
    EXPECT_EQ(tree.recorded_ns, 150);
}

TEST(CallTreeTest, BottomUpRecursionCountsOnceInTotals) {
    const Trace trace = TraceFixture().thread("t", {{"f", 0, 9, {{"g", 1, 6, {{"f", 2, 3}}}}}}).trace();
    EXPECT_EQ(drawing(call_tree(trace, {.bottom_up = true})),
              "f 2 9 6\n  g 1 0 3\n    f 1 0 3\ng 1 6 3\n  f 1 6 3\n");
    EXPECT_EQ(drawing(call_tree(trace, {.bottom_up = true, .caller_levels = 1})),
              "f 2 9 6\n  g 1 0 3\ng 1 6 3\n  f 1 6 3\n");
}

TEST(CallTreeTest, BottomUpByThreadInvertsEachThreadSeparately) {
    const Trace trace =
        TraceFixture().thread("one", {{"a", 0, 10, {{"b", 0, 4}}}}).thread("two", {{"b", 0, 3}}).trace();
    EXPECT_EQ(drawing(call_tree(trace, {.by_thread = true, .bottom_up = true})),
              "one 0 10 0\n  a 1 10 6\n  b 1 4 4\n    a 1 4 4\ntwo 0 3 0\n  b 1 3 3\n");
}

TEST(CallTreeTest, AnInvertedVeryDeepTraceStaysSmall) {
    std::vector<RangeSpec> ranges = {{"leaf", 0, 1}};
    for (int i = 0; i < 3000; ++i) ranges = {{"r" + std::to_string(i), 0, 1, std::move(ranges)}};
    const Trace trace = TraceFixture().thread("t", ranges).trace();
    EXPECT_LE(call_tree(trace, {.bottom_up = true, .caller_levels = 10}).nodes.size(), 3001u * 11);
}

TEST(CallTreeTest, InsideANameOnlyItsRangesAndTheirDescendantsCount) {
    const Trace trace = TraceFixture()
                            .thread("t", {{"a", 0, 100, {{"x", 10, 30, {{"y", 10, 5}, {"x", 20, 5}}}}},
                                          {"x", 200, 7},
                                          {"y", 300, 9}})
                            .trace();
    const CallTree tree = call_tree(trace, {.inside = "x"});
    EXPECT_EQ(drawing(tree), "x 2 37 27\n  y 1 5 5\n  x 1 5 5\n");
    EXPECT_EQ(tree.recorded_ns, 37);
    EXPECT_EQ(drawing(call_tree(trace, {.inside_range = 1})), "x 1 30 20\n  y 1 5 5\n  x 1 5 5\n");
    EXPECT_EQ(drawing(call_tree(trace, {.bottom_up = true, .inside = "x"})),
              "x 3 37 32\n  x 1 0 5\ny 1 5 5\n  x 1 5 5\n");
    EXPECT_TRUE(call_tree(trace, {.inside = "nothing"}).nodes.empty());
    EXPECT_THROW(call_tree(trace, {.inside_range = 99}), Error);
    EXPECT_THROW(call_tree(trace, {.inside = "x", .inside_range = 1}), Error);
}

TEST(CallTreeTest, StepsAreRootsInTimeOrder) {
    const Trace trace = TraceFixture()
                            .thread("t", {{"ProfilerStep#7", 0, 10, {{"a", 1, 2}}},
                                          {"ProfilerStep#8", 20, 90, {{"a", 21, 5}, {"a", 30, 4}}},
                                          {"a", 200, 1}})
                            .trace();
    EXPECT_EQ(drawing(call_tree(trace, {.by_step = true})),
              "ProfilerStep#7 1 10 8\n  a 1 2 2\nProfilerStep#8 1 90 81\n  a 2 9 9\n");
    EXPECT_EQ(drawing(call_tree(trace, {.by_thread = true, .by_step = true})),
              "t 0 100 0\n  ProfilerStep#7 1 10 8\n    a 1 2 2\n  ProfilerStep#8 1 90 81\n    a 2 9 9\n");
    EXPECT_EQ(drawing(call_tree(trace, {.step = 8})), "ProfilerStep#8 1 90 81\n  a 2 9 9\n");
    const std::string merged = "ProfilerStep* 2 100 89\n  a 3 11 11\n";
    EXPECT_EQ(drawing(call_tree(trace, {.merge_steps = true})).substr(0, merged.size()), merged);
    for (const char* name : {"ProfilerStep#8", "ProfilerStep*"}) {
        EXPECT_EQ(drawing(call_tree(trace, {.inside = name, .merge_steps = true})), merged) << name;
        EXPECT_EQ(drawing(call_tree(trace, {.bottom_up = true, .callers_of = name, .merge_steps = true})),
                  "ProfilerStep* 2 100 89\n")
            << name;
    }
    EXPECT_EQ(drawing(call_tree(trace, {.by_step = true, .step_name = "a"})),
              "a 1 2 2\na 1 5 5\na 1 4 4\na 1 1 1\n");
    EXPECT_TRUE(call_tree(trace, {.step = 9}).nodes.empty());
}

TEST(CallTreeTest, StepsThatCrossRangesContainTheOnesInThem) {
    const Trace trace = TraceFixture()
                            .thread("t", {{"fit",
                                           0,
                                           900,
                                           {{"one", 10, 100, {{"forward", 10, 30}, {"backward", 60, 30}}},
                                            {"load", 150, 20},
                                            {"two", 200, 100, {{"forward", 210, 30}}},
                                            {"ProfilerStep#2", 400, 100, {{"load", 410, 20}}}}}})
                            .async("t async", {{"ProfilerStep#1", 50, 200, {}, kAsync}})
                            .trace();
    EXPECT_EQ(drawing(call_tree(trace, {.step = 1})),
              "ProfilerStep#1 1 200 150\n  backward 1 30 30\n  load 1 20 20\n");
    EXPECT_EQ(drawing(call_tree(trace, {.by_step = true})),
              "ProfilerStep#1 1 200 150\n  backward 1 30 30\n  load 1 20 20\n"
              "ProfilerStep#2 1 100 80\n  load 1 20 20\n");
}

TEST(CallTreeTest, TheRootsOfStepsHaveTheirNumbers) {
    TraceFixture fixture;
    fixture.site("round", Scope::Step);
    fixture.thread("t", {{"round", 0, 10, {{"a", 1, 2}}}, {"round", 20, 90}});
    const Trace trace = fixture.trace();
    const auto numbers = [&](const CallTreeOptions& options) {
        std::string text;
        for (const CallTreeNode& node : call_tree(trace, options).nodes)
            text += node.name + (node.step ? std::to_string(*node.step) : "") + " ";
        return text;
    };
    EXPECT_EQ(numbers({.by_step = true}), "round0 a round1 ");
    EXPECT_EQ(numbers({.by_thread = true, .by_step = true}), "t round0 a round1 ");
    EXPECT_EQ(numbers({.step = 1}), "round1 ");
    EXPECT_EQ(numbers({.bottom_up = true, .step = 1}), "round ");
    EXPECT_EQ(numbers({.inside = "round"}), "round a ");
}

TEST(CallTreeTest, LimitsRemoveNodesWithTheirSubtrees) {
    const Trace trace =
        TraceFixture()
            .thread("t", {{"a", 0, 90, {{"b", 0, 50, {{"c", 0, 40}}}, {"d", 60, 5}}}, {"e", 90, 10}})
            .trace();
    const auto limited = [&](const TreeLimits& limits, std::size_t gone) {
        CallTree tree = call_tree(trace);
        EXPECT_EQ(limit_tree(tree, limits), gone);
        for (const CallTreeNode& node : tree.nodes) {
            if (node.parent != kNoRow) {
                EXPECT_EQ(tree.nodes[node.parent].depth + 1, node.depth);
            }
        }
        return drawing(tree);
    };
    EXPECT_EQ(limited({}, 0), "a 1 90 35\n  b 1 50 10\n    c 1 40 40\n  d 1 5 5\ne 1 10 10\n");
    EXPECT_EQ(limited({.max_depth = 1}, 3), "a 1 90 35\ne 1 10 10\n");
    EXPECT_EQ(limited({.min_share = 0.3}, 2), "a 1 90 35\n  b 1 50 10\n    c 1 40 40\n");
    EXPECT_EQ(limited({.max_nodes = 2}, 3), "a 1 90 35\n  b 1 50 10\n");
}

TEST(CallTreeTest, TheHotPathEndsWhereSelfTimeDominates) {
    const CallTree tree = call_tree(
        TraceFixture()
            .thread("t", {{"a", 0, 90, {{"b", 0, 80, {{"c", 0, 30, {{"d", 0, 29}}}}}, {"e", 85, 5}}},
                          {"f", 90, 60}})
            .async("async", {{"waiting", 0, 5000}})
            .trace());
    std::vector<std::string> names;
    for (const std::uint32_t node : hot_path(tree)) names.push_back(tree.nodes[node].name);
    EXPECT_EQ(names, (std::vector<std::string>{"a", "b"}));  // 50 in b itself, 30 in c

    names.clear();
    for (const std::uint32_t node : heaviest_nodes(tree, 3)) {
        names.emplace_back();
        for (const std::uint32_t step : path_to(tree, node)) names.back() += "/" + tree.nodes[step].name;
    }
    EXPECT_EQ(names, (std::vector<std::string>{"/f", "/a/b", "/a/b/c/d"}));
    EXPECT_TRUE(hot_path(CallTree()).empty());
}

TEST(CallTreeTest, TheHotPathOfThreadsBeginsWithTheBusiest) {
    const CallTree tree = call_tree(TraceFixture()
                                        .thread("one", {{"a", 0, 10}})
                                        .thread("two", {{"b", 0, 20}, {"c", 30, 25, {{"d", 30, 20}}}})
                                        .async("async", {{"waiting", 0, 5000}})
                                        .trace(),
                                    {.by_thread = true});
    std::vector<std::string> names;
    for (const std::uint32_t node : hot_path(tree)) names.push_back(tree.nodes[node].name);
    EXPECT_EQ(names, (std::vector<std::string>{"two", "c", "d"}));
}

TEST(CallTreeTest, SelfTimesAddUpInEitherDirection) {
    for (unsigned seed = 0; seed < 40; ++seed) {
        const Trace trace = testing::random_training_trace(seed);
        std::int64_t recorded = 0, device = 0;  // top-level ranges; on a device, work only
        std::map<std::string, std::int64_t> self;
        std::map<std::string, std::uint64_t> count;
        for (const TrackInfo& track : trace.tracks()) {
            if (track.kind == TrackKind::Async) continue;
            for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
                const bool on_device = track.device.type == DeviceType::Cuda;
                ++count[std::string(trace.range_name(row))];
                Row work = row;
                while (on_device && work != kNoRow &&
                       trace.sites()[trace.ranges().site[work]].scope == Scope::User)
                    work = trace.ranges().parent[work];
                if (work == kNoRow) continue;
                self[std::string(trace.range_name(work))] += trace.ranges().self_ns[row];
                if (on_device) {
                    device += trace.ranges().self_ns[row];
                } else if (trace.ranges().parent[row] == kNoRow) {
                    recorded += trace.clipped_duration_ns(row);
                }
            }
        }
        for (const bool by_thread : {false, true}) {
            const CallTree down = call_tree(trace, {.by_thread = by_thread});
            const CallTree up = call_tree(trace, {.by_thread = by_thread, .bottom_up = true});
            EXPECT_EQ(down.recorded_ns, recorded);
            EXPECT_EQ(down.device_ns, device);
            std::int64_t sum = 0;
            auto self_down = self, self_up = self;
            auto count_up = count;
            for (const CallTreeNode& node : down.nodes) {
                if (node.is_async) continue;
                sum += node.self_ns;
                if (!node.is_thread) self_down[node.name] -= node.self_ns;
            }
            EXPECT_EQ(sum, recorded + device);
            for (const CallTreeNode& node : up.nodes) {
                if (node.is_async || node.depth != (by_thread ? 1u : 0u)) continue;
                self_up[node.name] -= node.self_ns;
                count_up[node.name] -= node.count;
            }
            for (const auto& [name, rest] : self_down) EXPECT_EQ(rest, 0) << seed << " " << name;
            for (const auto& [name, rest] : self_up) EXPECT_EQ(rest, 0) << seed << " " << name;
            for (const auto& [name, rest] : count_up) EXPECT_EQ(rest, 0u) << seed << " " << name;
        }
    }
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
}  // namespace marey
