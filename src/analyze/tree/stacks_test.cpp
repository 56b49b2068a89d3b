// stacks_test.cpp: folded stacks: entries and metrics; nothing is lost or counted twice.
#include <gtest/gtest.h>

#include <map>

#include <marey/error.h>
#include <marey/stacks.h>

#include "analyze/trace_fixture.h"
#include "trace/argument_fixture.h"
#include "trace/random_trace_fixture.h"

namespace marey {
namespace {

std::string text(const std::vector<FoldedStack>& stacks) {
    std::string result;
    for (const FoldedStack& stack : stacks) result += stack.stack + " " + std::to_string(stack.value) + "\n";
    return result;
}

Argument text_value(TraceFixture& fixture, const std::string& text) {
    return testing::string_value(fixture.string(text));
}

/// train.py calls an operator that launches two kernels through the runtime; a third kernel has no launch
/// call.
Trace torch_trace() {
    TraceAssembler assembler;
    assembler.add_process({});
    const auto lane = [&](const char* name, TrackKind kind, Device device) {
        ThreadInfo thread;
        thread.id = kind == TrackKind::Thread ? 1 : 2;
        thread.os_tid = kind == TrackKind::Thread ? 11 : 0;
        thread.name = assembler.string(name);
        Lane wanted;
        wanted.thread = assembler.add_thread(thread);
        wanted.kind = kind;
        wanted.device = device;
        return assembler.add_lane(wanted);
    };
    const std::uint32_t host = lane("main", TrackKind::Thread, {});
    const std::uint32_t queue = lane("stream 7", TrackKind::Device, {DeviceType::Cuda, 0});
    const auto add = [&](std::uint32_t where, const char* name, Scope scope, int start_us, int us) {
        return assembler.add_range(where, start_us * 1000, us * 1000,
                                   assembler.site({assembler.string(name), 0, 0, scope}));
    };
    add(host, "train.py(3): <module>", Scope::PythonFunction, 0, 100);
    add(host, "train.py(9): step", Scope::PythonFunction, 10, 80);
    add(host, "aten::linear", Scope::Function, 20, 60);
    add(host, "aten::addmm", Scope::Function, 30, 40);
    const auto first = add(host, "cudaLaunchKernel", Scope::DeviceRuntime, 35, 5);
    const auto second = add(host, "cudaLaunchKernel", Scope::DeviceRuntime, 45, 5);
    add(host, "aten::relu", Scope::Function, 200, 7);  // outside any Python function
    assembler.add_link(first, add(queue, "gemm", Scope::Device, 50, 30), LinkKind::Launch);
    assembler.add_link(second, add(queue, "gemm", Scope::Device, 90, 20), LinkKind::Launch);
    add(queue, "Memset", Scope::Device, 120, 4);
    // Encloses all of them.
    assembler.add_link(second, add(queue, "step", Scope::User, 50, 80), LinkKind::Launch);
    return assembler.finish();
}

TEST(StacksTest, TheMareyFormatHasTheWholePathInNanoseconds) {
    const Trace trace = TraceFixture()
                            .thread("one", {{"a", 0, 10, {{"b", 1, 4}, {"b", 6, 3}}}, {"a", 20, 5}})
                            .thread("two", {{"b", 0, 6}})
                            .async("async", {{"waiting", 0, 500}})
                            .trace();
    EXPECT_EQ(text(fold_stacks(trace)), "a 8\na;b 7\nb 6\n");
    EXPECT_EQ(text(fold_stacks(trace, {.metric = "count"})), "a 2\na;b 2\nb 1\n");
    EXPECT_EQ(text(fold_stacks(trace, {.by_thread = true})), "one;a 8\none;a;b 7\ntwo;b 6\n");
}

TEST(StacksTest, EntriesWithoutWhiteSpaceAndSemicolonsMerge) {
    const Trace trace =
        TraceFixture().thread("t", {{"a b;c\td\ne\rf", 0, 3, {{"", 0, 1}}}, {"a_b_c_d_e_f", 5, 4}}).trace();
    EXPECT_EQ(text(fold_stacks(trace)), "a_b_c_d_e_f 6\na_b_c_d_e_f;_ 1\n");
}

TEST(StacksTest, TheTorchFormatHasThePythonFunctionsAroundAnOperator) {
    const Trace trace = torch_trace();
    const StackOptions options{.frames = StackFrames::Python, .microseconds = true};
    EXPECT_EQ(text(fold_stacks(trace, options)), "train.py(3):_<module>;train.py(9):_step 60\n");
    StackOptions named = options;
    named.append_name = true;
    EXPECT_EQ(text(fold_stacks(trace, named)),
              "train.py(3):_<module>;train.py(9):_step;aten::linear 20\n"
              "train.py(3):_<module>;train.py(9):_step;aten::addmm 30\n"
              "train.py(3):_<module>;train.py(9):_step;cudaLaunchKernel 10\n");
}

TEST(StacksTest, WithoutOperatorsPythonStacksAreThoseOfTheCalls) {
    TraceFixture fixture;
    fixture.site("main", Scope::PythonFunction);
    fixture.site("f", Scope::PythonFunction);
    fixture.site("len", Scope::CFunction);
    fixture.site("mine", Scope::User);
    fixture.thread("t",
                   {{"main", 0, 100, {{"f", 10, 30, {{"len", 12, 5}}}, {"mine", 50, 20, {{"f", 52, 8}}}}}});
    const Trace trace = fixture.trace();
    EXPECT_EQ(text(fold_stacks(trace, {.frames = StackFrames::Python})),
              "main 62\nmain;f 33\nmain;f;len 5\n");
    EXPECT_EQ(text(fold_stacks(trace, {.frames = StackFrames::Python, .append_name = true})),
              "main 50\nmain;f 33\nmain;f;len 5\nmain;mine 12\n");
    EXPECT_EQ(text(fold_stacks(trace, {.metric = "count", .frames = StackFrames::Python})),
              "main 2\nmain;f 2\nmain;f;len 1\n");
}

TEST(StacksTest, ARecordedStackTakesPrecedenceOverTheEnclosingOne) {
    TraceFixture fixture;
    fixture.site("f", Scope::PythonFunction);
    fixture.site("op", Scope::Function);
    fixture.thread("t", {{"f", 0, 100, {{"op", 0, 30}}}});
    fixture.value("Call stack", text_value(fixture, "inner (x.py:3);outer (y.py:4);"));
    const Trace trace = fixture.trace();
    EXPECT_EQ(text(fold_stacks(trace, {.frames = StackFrames::Python})),
              "outer_(y.py:4);inner_(x.py:3) 30\n");
}

TEST(StacksTest, BackwardWorkCountsForTheStackOfTheForwardRange) {
    TraceFixture fixture;
    fixture.site("forward", Scope::PythonFunction);
    fixture.site("run", Scope::PythonFunction);
    fixture.site("MulBackward", Scope::BackwardFunction);
    fixture.thread("main", {{"forward", 0, 100, {{"mul", 10, 5}}}});
    fixture.thread("engine",
                   {{"run", 200, 100, {{"MulBackward", 210, 50, {{"grad", 220, 5}}}, {"other", 270, 3}}}});
    fixture.data().range_details = {{1, 4, 0, 0}, {3, 4, 1, 0}};
    const Trace trace = fixture.trace();
    EXPECT_EQ(text(fold_stacks(trace, {.frames = StackFrames::Python})), "forward 55\nrun 3\n");
    EXPECT_EQ(text(fold_stacks(trace, {.frames = StackFrames::Python, .by_thread = true})),
              "main;forward 5\nengine;run 3\nengine;forward 50\n");
}

TEST(StacksTest, EngineWorkCountsForTheFunctionsOfTheRequestingThread) {
    TraceFixture fixture;
    fixture.site("step", Scope::PythonFunction);
    fixture.site("grad", Scope::Function);
    fixture.thread("main", {{"step", 0, 100, {{"backward", 20, 70}}}});
    fixture.thread("engine", {{"evaluate", 30, 10, {{"grad", 32, 5}}}, {"own", 50, 7}});
    fixture.data().range_details = {{2, 1, 1, 0}};
    EXPECT_EQ(text(fold_stacks(fixture.trace(), {.frames = StackFrames::Python, .by_thread = true})),
              "main;step 70\nengine;step 10\n");
}

TEST(StacksTest, DeviceTimeBelongsToTheOperatorThatLaunchedIt) {
    const Trace trace = torch_trace();
    EXPECT_EQ(text(fold_stacks(trace, {.metric = "self_cuda_time_total", .microseconds = true})),
              "step;Memset 4\ntrain.py(3):_<module>;train.py(9):_step;aten::linear;aten::addmm;gemm 50\n");
    EXPECT_EQ(text(fold_stacks(trace, {.metric = "self_cuda_time_total",
                                       .frames = StackFrames::Python,
                                       .append_name = true,
                                       .microseconds = true})),
              "train.py(3):_<module>;train.py(9):_step;aten::addmm 50\n");
    EXPECT_EQ(text(fold_stacks(trace, {.metric = "self_xpu_time_total"})), "");
    EXPECT_EQ(fold_stacks(trace, {.metric = "self_device_time_total"}).size(), 2u);
}

TEST(StacksTest, SubMicrosecondTimesAreSummedBeforeRounding) {
    const Trace trace =
        TraceFixture().thread("t", {{"a", 0, 600}, {"a", 1000, 600}, {"b", 2000, 600}}).trace();
    EXPECT_EQ(text(fold_stacks(trace, {.microseconds = true})), "a 1\n");
}

TEST(StacksTest, AllocationsCountForTheInnermostRangeOfTheirThread) {
    TraceAssembler assembler;
    assembler.add_process({});
    ThreadInfo info;
    info.id = 1;
    Lane lane;
    lane.thread = assembler.add_thread(info);
    const std::uint32_t host = assembler.add_lane(lane);
    assembler.add_range(host, 0, 100, assembler.site({assembler.string("a"), 0, 0}));
    assembler.add_range(host, 10, 30, assembler.site({assembler.string("b"), 0, 0}));
    assembler.add_range(host, 30, 40, assembler.site({assembler.string("c"), 0, 0}));  // overlaps b
    const auto report = [&](std::int64_t time, std::int64_t bytes, bool refused = false) {
        AllocationReport made;
        made.time_ns = time;
        made.bytes = bytes;
        made.out_of_memory = refused;
        assembler.add_memory(0, made);
    };
    report(5, 1);
    report(10, 2);
    report(35, 4);
    report(70, 8);  // c has ended
    report(80, -100);
    report(90, 1000, true);
    report(100, 16);  // outside
    EXPECT_EQ(text(fold_stacks(assembler.finish(), {.metric = "allocated_bytes"})),
              "a 9\na;b 2\na;c 4\n[memory] 16\n");
}

TEST(StacksTest, AnUnknownMetricIsAnErrorThatListsTheKnownOnes) {
    try {
        fold_stacks(Trace(), {.metric = "self_time"});
        FAIL();
    } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("'self_time'"), std::string::npos) << error.what();
        for (const std::string& known : stack_metrics())
            EXPECT_NE(std::string(error.what()).find(known), std::string::npos) << error.what();
    }
}

TEST(StacksTest, StacksThatAreTooDeepAreTruncatedAndKeepTheirTime) {
    std::vector<RangeSpec> ranges = {{"leaf", 0, 100}};
    for (int i = 0; i < 50; ++i) ranges = {{"r", 0, 100 + i, std::move(ranges)}};
    const Trace trace = TraceFixture().thread("t", ranges).trace();
    const std::vector<FoldedStack> stacks = fold_stacks(trace, {.max_entries = 3});
    ASSERT_EQ(stacks.size(), 3u);
    EXPECT_EQ(stacks[2].stack, "r;r;r");
    EXPECT_EQ(stacks[0].value + stacks[1].value + stacks[2].value, 149);
}

TEST(StacksTest, AllStacksAddUpToTheSelfTime) {
    for (unsigned seed = 0; seed < 40; ++seed) {
        const Trace trace = testing::random_training_trace(seed);
        std::map<std::string, std::int64_t>
            wanted;  // of a path; overlaps of imported traces can make it negative
        std::int64_t count = 0, device = 0, stacked_device = 0;
        for (const TrackInfo& track : trace.tracks()) {
            if (track.kind == TrackKind::Async) continue;
            for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
                if (track.device.type == DeviceType::Cuda) {
                    Row work = row;
                    while (work != kNoRow && trace.sites()[trace.ranges().site[work]].scope == Scope::User)
                        work = trace.ranges().parent[work];
                    if (work != kNoRow) device += trace.ranges().self_ns[row];
                    continue;
                }
                std::string path;
                for (Row at = row; at != kNoRow; at = trace.ranges().parent[at])
                    path = std::string(trace.range_name(at)) + (path.empty() ? "" : ";") + path;
                wanted[path] += trace.ranges().self_ns[row];
                ++count;
            }
        }
        std::erase_if(wanted, [](const auto& entry) { return entry.second <= 0; });
        std::map<std::string, std::int64_t> got;
        for (const FoldedStack& stack : fold_stacks(trace))
            EXPECT_TRUE(got.emplace(stack.stack, stack.value).second) << stack.stack;
        EXPECT_EQ(got, wanted) << seed;
        for (const FoldedStack& stack : fold_stacks(trace, {.metric = "count"})) count -= stack.value;
        EXPECT_EQ(count, 0);
        for (const FoldedStack& stack : fold_stacks(trace, {.metric = "self_cuda_time_total"}))
            stacked_device += stack.value;
        EXPECT_GE(stacked_device, device);  // equal if no kernel's children are longer than the kernel
    }
}

TEST(StackTree, KeepsNamesThatFoldedStacksMerge) {
    TraceFixture fixture;
    fixture.thread("main", {{"ProfilerStep#0", 0, 100, {{"load data", 0, 40}, {"load_data", 40, 20}}},
                            {"ProfilerStep#1", 110, 50, {{"load data", 110, 5}}}});
    const Trace trace = fixture.trace();
    EXPECT_EQ(
        text(fold_stacks(trace)),
        "ProfilerStep#0 40\nProfilerStep#0;load_data 60\nProfilerStep#1 45\nProfilerStep#1;load_data 5\n");
    std::string nodes;
    for (const StackNode& node : stack_tree(trace))
        nodes += std::to_string(static_cast<std::int32_t>(node.parent)) + " " + node.name + " " +
                 std::to_string(node.value) + "\n";
    EXPECT_EQ(nodes, "-1 ProfilerStep* 85\n0 load data 45\n0 load_data 20\n");
}

}  // namespace
}  // namespace marey
