// averages_test.cpp: counts, totals, memory, device times and percentiles by key.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <marey/analyze.h>

#include "analyze/trace_fixture.h"
#include "trace/trace_assembler.h"

namespace marey {
namespace {

const AverageRow& row(const Averages& averages, const std::string& name, Row thread = kNoRow) {
    for (const AverageRow& candidate : averages.rows) {
        if (candidate.name == name && (thread == kNoRow || candidate.thread == thread)) return candidate;
    }
    static const AverageRow none;
    ADD_FAILURE() << "no row " << name;
    return none;
}

TEST(Averages, AnEmptyTraceHasNoRows) {
    const Averages averages = key_averages(Trace());
    EXPECT_TRUE(averages.rows.empty());
    EXPECT_EQ(averages.recorded_ns, 0);
}

TEST(Averages, TotalIncludesTheChildrenAndSelfDoesNot) {
    const Averages averages = key_averages(
        TraceFixture().thread("main", {{"load", 0, 100, {{"read", 10, 20}, {"parse", 40, 50}}}}).trace());
    EXPECT_EQ(row(averages, "load").cpu_time_total_ns, 100);
    EXPECT_EQ(row(averages, "load").self_cpu_time_total_ns, 30);
    EXPECT_EQ(row(averages, "parse").self_cpu_time_total_ns, 50);
    EXPECT_EQ(averages.recorded_ns, 100);
    EXPECT_EQ(averages.range_count, 3u);
}

TEST(Averages, FiveAndTenAverageToSevenAndAHalf) {
    const Averages averages = key_averages(
        TraceFixture()
            .thread("main", {{"a", 0, 5000}, {"a", 5000, 10000}, {"a", 20000, 5000}, {"a", 30000, 10000}})
            .trace());
    EXPECT_EQ(row(averages, "a").count, 4u);
    EXPECT_EQ(row(averages, "a").cpu_time_total_ns, 30000);
    EXPECT_EQ(row(averages, "a").cpu_time_ns(), 7500.0);
    EXPECT_EQ(row(averages, "a").min_ns, 5000);
    EXPECT_EQ(row(averages, "a").max_ns, 10000);
}

TEST(Averages, RecursionIsCoveredOnceAndCountedEveryTime) {
    const Averages averages = key_averages(
        TraceFixture()
            .thread("main", {{"f", 0, 100, {{"g", 10, 80, {{"f", 20, 30}, {"f", 60, 10}}}}}, {"f", 200, 50}})
            .trace(),
        {.nesting = true});
    EXPECT_EQ(row(averages, "f").covered_ns, 150);
    EXPECT_EQ(row(averages, "f").cpu_time_total_ns, 100 + 30 + 10 + 50);
    EXPECT_EQ(row(averages, "f").count, 4u);
    EXPECT_EQ(row(averages, "f").self_cpu_time_total_ns, 20 + 30 + 10 + 50);
    EXPECT_EQ(row(averages, "f").cpu_time_ns(), (100 + 30 + 10 + 50) / 4.0);
}

TEST(Averages, ARecursionThatEndsATrackDoesNotReachIntoTheNext) {
    const Averages averages = key_averages(
        TraceFixture().thread("one", {{"f", 0, 100, {{"f", 10, 10}}}}).thread("two", {{"f", 0, 40}}).trace(),
        {.merge_repeated = false, .nesting = true});
    EXPECT_EQ(row(averages, "f").covered_ns, 140);
    EXPECT_EQ(row(averages, "f").threads, 2u);
}

TEST(Averages, ARangeThatRepeatsItsParentIsMergedIntoIt) {
    const auto trace = TraceFixture()
                           .thread("main", {{"f", 0, 100, {{"f", 10, 80, {{"f", 20, 60, {{"g", 30, 10}}}}}}},
                                            {"h", 200, 50, {{"h", 200, 20}, {"h", 230, 10}}}})
                           .trace();
    const Averages merged = key_averages(trace);
    EXPECT_EQ(row(merged, "f").count, 1u);
    EXPECT_EQ(row(merged, "f").cpu_time_total_ns, 100);
    EXPECT_EQ(row(merged, "f").self_cpu_time_total_ns, 90);
    EXPECT_EQ(row(merged, "f").min_ns, 100);
    EXPECT_EQ(row(merged, "g").count, 1u);
    EXPECT_EQ(row(merged, "h").count, 3u);
    EXPECT_EQ(merged.recorded_ns, 150);
    const Averages all = key_averages(trace, {.merge_repeated = false});
    EXPECT_EQ(row(all, "f").count, 3u);
    EXPECT_EQ(row(all, "f").cpu_time_total_ns, 240);
    EXPECT_EQ(all.recorded_ns, 150);
}

TEST(Averages, ARepetitionOfAnotherOverloadHasNoSeparateRow) {
    TraceFixture fixture;
    fixture.thread("main", {{"f", 0, 100, {{"f.out", 10, 80}}}});
    fixture.data().sites[1].name = fixture.string("f");
    fixture.data().sites[1].overload = fixture.string("out");
    const Averages averages = key_averages(fixture.trace(), {.by_overload = true});
    ASSERT_EQ(averages.rows.size(), 1u);
    EXPECT_EQ(averages.rows[0].count, 1u);
    EXPECT_EQ(averages.rows[0].self_cpu_time_total_ns, 100);
}

TEST(Averages, SitesWithTheSameNameAreOneRow) {
    TraceFixture fixture;
    fixture.thread("main", {{"a", 0, 10}, {"b", 20, 10}});
    fixture.data().sites.push_back({fixture.string("a"), fixture.string("other.cpp"), 7, Scope::User});
    fixture.data().range_site[1] = 2;
    const Averages averages = key_averages(fixture.trace());
    ASSERT_EQ(averages.rows.size(), 1u);
    EXPECT_EQ(row(averages, "a").count, 2u);
}

TEST(Averages, DurationsAreClippedToTheWindow) {
    const Averages averages =
        key_averages(TraceFixture()
                         .window(100, 200)
                         .thread("main", {{"before", 50, 100, {{"child", 60, 60}}, kBeganBefore},
                                          {"after", 180, 100, {}, kUnfinished}})
                         .trace());
    EXPECT_EQ(row(averages, "before").cpu_time_total_ns, 50);
    EXPECT_EQ(row(averages, "before").self_cpu_time_total_ns, 30);
    EXPECT_EQ(row(averages, "child").max_ns, 20);
    EXPECT_EQ(row(averages, "after").cpu_time_total_ns, 20);
    EXPECT_EQ(row(averages, "after").unfinished, 1u);
    EXPECT_EQ(averages.window_ns, 100);
}

TEST(Averages, ByThreadSeparatesThreadsAndMergesTheirTracks) {
    const Averages averages = key_averages(TraceFixture()
                                               .thread("one", {{"a", 0, 10}, {"b", 20, 5}})
                                               .async("one (async)", {{"a", 5, 30}})
                                               .thread("two", {{"b", 0, 7}, {"a", 10, 1}})
                                               .trace(),
                                           {.by_thread = true, .percentiles = true});
    EXPECT_EQ(averages.rows.size(), 4u);
    EXPECT_EQ(row(averages, "a", 0).count, 2u);
    EXPECT_EQ(row(averages, "a", 0).cpu_time_total_ns, 40);
    EXPECT_EQ(row(averages, "a", 0).p50_ns, 10);
    EXPECT_EQ(row(averages, "b", 0).p50_ns, 5);
    EXPECT_EQ(row(averages, "b", 1).p99_ns, 7);
    EXPECT_EQ(row(averages, "a", 1).max_ns, 1);
}

TEST(Averages, AsyncRangesHaveNoSelfTimeAndNoShare) {
    const Averages averages = key_averages(
        TraceFixture().thread("t", {{"a", 0, 10}}).async("t (async)", {{"request", 0, 500}}).trace());
    EXPECT_EQ(row(averages, "request").cpu_time_total_ns, 500);
    EXPECT_EQ(row(averages, "request").self_cpu_time_total_ns, 0);
    EXPECT_EQ(row(averages, "request").async_count, 1u);
    EXPECT_EQ(averages.recorded_ns, 10);
}

TEST(Averages, PercentilesAreNearestRank) {
    std::vector<RangeSpec> ranges;
    for (int i = 1; i <= 200; ++i)
        ranges.push_back({"a", i * 1000, i * 37 % 201});  // every length from 1 to 200
    const Averages averages =
        key_averages(TraceFixture().thread("main", ranges).trace(), {.percentiles = true});
    EXPECT_EQ(row(averages, "a").p50_ns, 100);
    EXPECT_EQ(row(averages, "a").p90_ns, 180);
    EXPECT_EQ(row(averages, "a").p99_ns, 198);
}

TEST(Averages, AgreesWithAPlainCountOverRandomTraces) {
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
        const Averages averages = key_averages(fixture.trace(), {.by_thread = true, .percentiles = true});
        EXPECT_EQ(averages.rows.size(), expected.size());
        for (auto& [key, durations] : expected) {
            std::sort(durations.begin(), durations.end());
            const AverageRow& found = row(averages, key.first, key.second);
            EXPECT_EQ(found.count, durations.size());
            EXPECT_EQ(found.min_ns, durations.front());
            EXPECT_EQ(found.max_ns, durations.back());
            EXPECT_EQ(found.p50_ns, durations[(durations.size() + 1) / 2 - 1]);
            EXPECT_EQ(found.p99_ns, durations[(durations.size() * 99 + 99) / 100 - 1]);
        }
    }
}

/// Two operators on a thread that launch kernels through a runtime call, one inside the other.
Trace device_trace() {
    TraceAssembler assembler;
    const Row process = assembler.add_process({});
    const Row thread = assembler.add_thread({.process = process, .id = 1, .os_tid = 7});
    const Row queue = assembler.add_thread({.process = process, .id = 2});
    const std::uint32_t host = assembler.add_lane({.thread = thread});
    const std::uint32_t device = assembler.add_lane(
        {.thread = queue, .kind = TrackKind::Device, .device = {DeviceType::Cuda, 0}, .stream = 7});
    const auto site = [&](const char* name, Scope scope) {
        SiteInfo info;
        info.name = assembler.string(name);
        info.scope = scope;
        return assembler.site(info);
    };
    const auto outer = assembler.add_range(host, 0, 1000, site("outer", Scope::Function));
    assembler.add_range(host, 100, 500, site("inner", Scope::Function));
    const auto first = assembler.add_range(host, 200, 50, site("launch", Scope::DeviceRuntime));
    const auto second = assembler.add_range(host, 700, 50, site("launch", Scope::DeviceRuntime));
    const auto alone = assembler.add_range(host, 2000, 50, site("launch", Scope::DeviceRuntime));
    const std::uint32_t kernel = site("kernel", Scope::Device);
    const auto mark = assembler.add_range(device, 300, 100, site("outer", Scope::User));
    const auto one = assembler.add_range(device, 300, 40, kernel);
    const auto two = assembler.add_range(device, 800, 60, kernel);
    const auto three = assembler.add_range(device, 2100, 5, kernel);
    assembler.add_link(first, one, LinkKind::Launch);
    assembler.add_link(second, two, LinkKind::Launch);
    assembler.add_link(alone, two, LinkKind::Launch);  // nothing counts as launched twice
    assembler.add_link(alone, three, LinkKind::Launch);
    assembler.add_link(outer, mark, LinkKind::Flow);
    return assembler.finish();
}

TEST(Averages, KernelsBelongToTheRangeAroundTheirLaunchCall) {
    const Averages averages = key_averages(device_trace());
    EXPECT_EQ(averages.device, DeviceType::Cuda);
    ASSERT_EQ(averages.rows.size(), 5u);
    const AverageRow& outer = averages.rows[0];
    EXPECT_EQ(outer.device_type, DeviceType::Cpu);
    EXPECT_EQ(outer.device_time_total_ns, 40 + 60);
    EXPECT_EQ(outer.self_device_time_total_ns, 60);
    EXPECT_EQ(row(averages, "inner").device_time_total_ns, 40);
    EXPECT_EQ(row(averages, "launch").self_device_time_total_ns, 5);
    EXPECT_EQ(row(averages, "launch").device_time_total_ns, 5);
    EXPECT_EQ(row(averages, "kernel").count, 3u);
    EXPECT_EQ(row(averages, "kernel").self_device_time_total_ns, 105);
    EXPECT_EQ(row(averages, "kernel").cpu_time_total_ns, 0);
    EXPECT_EQ(row(averages, "kernel").self_cpu_time_total_ns, 0);
    EXPECT_TRUE(row(averages, "kernel").is_top_level);
    const AverageRow& mark = averages.rows[3];
    EXPECT_EQ(mark.name, "outer");
    EXPECT_TRUE(mark.is_user_annotation);
    EXPECT_EQ(mark.self_device_time_total_ns, 100);
    EXPECT_EQ(averages.recorded_ns, 1050);
    const AverageRow total = total_average(averages);
    EXPECT_EQ(total.name, "Total");
    EXPECT_EQ(total.count, 9u);
    EXPECT_EQ(total.self_cpu_time_total_ns, 1050);
    EXPECT_EQ(total.min_ns, 5);
}

TEST(Averages, RowsAreInTheOrderOfTheirFirstRangesLongerFirst) {
    const Averages averages =
        key_averages(TraceFixture()
                         .thread("late", {{"c", 50, 10}, {"a", 70, 10}})
                         .thread("early", {{"b", 10, 40, {{"inside", 10, 20}}}, {"a", 60, 10}})
                         .trace());
    std::string order;
    for (const AverageRow& found : averages.rows) order += found.name + " ";
    EXPECT_EQ(order, "b inside c a ");
    EXPECT_EQ(row(averages, "a").thread, 1u);
    EXPECT_FALSE(row(averages, "inside").is_top_level);
}

TEST(Averages, StepsAreOneRow) {
    const Averages averages = key_averages(
        TraceFixture().thread("main", {{"ProfilerStep#1", 0, 10}, {"ProfilerStep#22", 10, 30}}).trace());
    ASSERT_EQ(averages.rows.size(), 1u);
    EXPECT_EQ(averages.rows[0].name, "ProfilerStep*");
    EXPECT_EQ(averages.rows[0].count, 2u);
}

TEST(Averages, ShapesSplitARow) {
    TraceAssembler assembler;
    const Row thread = assembler.add_thread({.process = assembler.add_process({}), .id = 1});
    const std::uint32_t lane = assembler.add_lane({.thread = thread});
    SiteInfo info;
    info.name = assembler.string("mm");
    const std::uint32_t site = assembler.site(info);
    const auto add = [&](std::int64_t start, const std::vector<std::vector<std::int64_t>>& shapes,
                         bool has_key) {
        const auto range = assembler.add_range(lane, start, 10, site);
        std::vector<Argument> values;
        Argument scalar;
        scalar.kind = ValueKind::Int;
        scalar.integer = start;
        if (has_key) {
            scalar.key = assembler.string("note");
            values.push_back(scalar);
            scalar.key = 0;
        }
        for (const auto& shape : shapes) {
            Argument value;
            value.kind = ValueKind::Array;
            value.role = ArgumentRole::Input;
            ArrayInfo array;
            array.dimensions = static_cast<std::uint32_t>(shape.size());
            value.array = assembler.add_array(array, shape);
            values.push_back(value);
        }
        scalar.role = ArgumentRole::Input;
        values.push_back(scalar);
        assembler.add_values(range, values);
    };
    add(0, {{2, 3}, {3, 4}}, false);
    add(10, {{2, 3}, {3, 5}}, false);
    add(20, {{2, 3}, {3, 4}}, true);
    add(30, {{2}, {3, 3, 4}}, false);
    assembler.add_range(lane, 40, 10, site);
    const Trace trace = assembler.finish();
    const Averages averages = key_averages(trace, {.by_input_shape = true});
    ASSERT_EQ(averages.rows.size(), 4u);
    EXPECT_EQ(averages.rows[0].input_shapes, "[[2, 3], [3, 4], []]");
    EXPECT_EQ(averages.rows[0].count, 2u);
    EXPECT_EQ(averages.rows[1].input_shapes, "[[2, 3], [3, 5], []]");
    EXPECT_EQ(averages.rows[2].input_shapes, "[[2], [3, 3, 4], []]");
    EXPECT_EQ(averages.rows[3].input_shapes, "[]");
    EXPECT_EQ(key_averages(trace).rows.size(), 1u);
    EXPECT_EQ(list_ranges(trace).rows[2].input_shapes, "[[2, 3], [3, 4], []]");
}

TEST(Averages, ManyShapesAreStillDistinguished) {
    TraceAssembler assembler;
    const Row thread = assembler.add_thread({.process = assembler.add_process({}), .id = 1});
    const std::uint32_t lane = assembler.add_lane({.thread = thread});
    const std::uint32_t site = assembler.site({});
    constexpr std::int64_t kShapes = 3000;
    for (std::int64_t i = 0; i < 3 * kShapes; ++i) {
        Argument value;
        value.kind = ValueKind::Array;
        value.role = ArgumentRole::Input;
        ArrayInfo array;
        array.dimensions = 1;
        const std::int64_t extent = i % kShapes;
        value.array = assembler.add_array(array, {&extent, 1});
        assembler.add_values(assembler.add_range(lane, i, 1, site), {&value, 1});
    }
    const Averages averages = key_averages(assembler.finish(), {.by_input_shape = true});
    ASSERT_EQ(averages.rows.size(), static_cast<std::size_t>(kShapes));
    for (const AverageRow& found : averages.rows) EXPECT_EQ(found.count, 3u);
}

TEST(Averages, StacksAreTheEnclosingFunctionsOrTheRecordedStack) {
    TraceFixture fixture;
    fixture.site("outer.py(1): main", Scope::PythonFunction);
    fixture.site("inner.py(2): step", Scope::PythonFunction);
    fixture.thread(
        "main",
        {{"outer.py(1): main",
          0,
          100,
          {{"op", 10, 5}, {"inner.py(2): step", 20, 50, {{"wrap", 30, 20, {{"op", 35, 5}}}}}, {"op", 80, 5}}},
         {"op", 200, 5}});
    Argument text;
    text.kind = ValueKind::String;
    text.string = fixture.string("inner.py(2): step;carried.py(9): f");
    fixture.value("Call stack", text);
    const Trace trace = fixture.trace();
    const auto stacks = [&](std::uint32_t entries) {
        std::vector<std::string> found;
        for (const AverageRow& each : key_averages(trace, {.stack_entries = entries}).rows) {
            if (each.name != "op") continue;
            std::string line = std::to_string(each.count) + ":";
            for (const std::string& entry : each.stack) line += " <" + entry + ">";
            found.push_back(line);
        }
        return found;
    };
    EXPECT_EQ(stacks(1), (std::vector<std::string>{"2: <outer.py(1): main>", "2: <inner.py(2): step>"}));
    EXPECT_EQ(stacks(5), (std::vector<std::string>{"2: <outer.py(1): main>",
                                                   "1: <inner.py(2): step> <outer.py(1): main>",
                                                   "1: <inner.py(2): step> <carried.py(9): f>"}));
}

TEST(Averages, BackwardRangesHaveTheStackOfTheForwardRange) {
    TraceFixture fixture;
    fixture.site("model.py(1): forward", Scope::PythonFunction);
    fixture.site("engine.py(1): run", Scope::PythonFunction);
    fixture.site("MulBackward", Scope::BackwardFunction);
    fixture.thread("main", {{"model.py(1): forward", 0, 100, {{"mul", 10, 5}}}});
    fixture.thread("engine", {{"engine.py(1): run",
                               200,
                               100,
                               {{"MulBackward", 210, 50, {{"mul_grad", 220, 5}}}, {"MulBackward", 270, 5}}}});
    fixture.data().range_details = {{1, 4, 0, 0}, {3, 4, 1, 0}, {5, 9, 1, 0}};
    const Averages listed = list_ranges(fixture.trace());
    EXPECT_EQ(row(listed, "mul").stack, std::vector<std::string>{"model.py(1): forward"});
    EXPECT_EQ(row(listed, "mul_grad").stack, std::vector<std::string>{"model.py(1): forward"});
    EXPECT_EQ(listed.rows[3].stack, std::vector<std::string>{"model.py(1): forward"});
    EXPECT_TRUE(listed.rows[5].stack.empty());  // its forward range is missing
}

TEST(Averages, WorkOnAnEngineThreadHasTheFunctionsOfTheRequestingThread) {
    TraceFixture fixture;
    fixture.site("train.py(1): step", Scope::PythonFunction);
    fixture.site("train.py(9): log", Scope::PythonFunction);
    fixture.thread("main",
                   {{"train.py(1): step", 0, 100, {{"backward", 20, 70}}}, {"train.py(9): log", 200, 50}});
    fixture.thread("engine", {{"early", -10, 5},
                              {"evaluate", 30, 10, {{"grad", 32, 5}}},
                              {"between", 150, 10},
                              {"autograd::engine::evaluate_function: early", 170, 10},
                              {"late", 210, 10},
                              {"own", 220, 10},
                              {"autograd::engine::evaluate_function: last", 240, 20}});
    fixture.data().range_details = {{3, 1, 1, 0}, {4, 4, 1, 0}, {6, 5, 1, 0}, {8, 6, 1, 0}};
    const Averages listed = list_ranges(fixture.trace());
    const std::vector<std::string> step{"train.py(1): step"}, log{"train.py(9): log"}, nothing;
    EXPECT_EQ(row(listed, "early").stack, nothing);  // no function had started
    EXPECT_EQ(row(listed, "evaluate").stack, step);
    EXPECT_EQ(row(listed, "grad").stack, step);
    EXPECT_EQ(row(listed, "between").stack, nothing);
    EXPECT_EQ(row(listed, "late").stack, log);
    EXPECT_EQ(row(listed, "own").stack, nothing);
    // The engine continues to run for the same thread while that thread waits.
    EXPECT_EQ(row(listed, "autograd::engine::evaluate_function: early").stack, nothing);
    EXPECT_EQ(row(listed, "autograd::engine::evaluate_function: last").stack, log);
}

TEST(Averages, ReportsOutsideAnyRangeAreSeparateRows) {
    TraceAssembler assembler;
    const Row thread = assembler.add_thread({.process = assembler.add_process({}), .id = 1});
    const std::uint32_t lane = assembler.add_lane({.thread = thread});
    SiteInfo info;
    info.name = assembler.string("outer");
    assembler.add_range(lane, 100, 100, assembler.site(info));
    info.name = assembler.string("inner");
    assembler.add_range(lane, 120, 50, assembler.site(info));
    const auto report = [&](std::int64_t time, std::int64_t bytes, DeviceType type, bool refused = false) {
        AllocationReport memory;
        memory.time_ns = time;
        memory.bytes = bytes;
        memory.device = {type, 0};
        memory.out_of_memory = refused;
        assembler.add_memory(thread, memory);
    };
    report(50, 1, DeviceType::Cpu);
    report(110, 10, DeviceType::Cpu);
    report(130, 100, DeviceType::Cpu);
    report(131, 1000, DeviceType::Cuda);
    report(140, 77, DeviceType::Cuda, true);
    report(300, -4, DeviceType::Cpu);
    const Averages averages = key_averages(assembler.finish());
    ASSERT_EQ(averages.rows.size(), 4u);
    EXPECT_TRUE(averages.has_memory);
    EXPECT_EQ(averages.rows[0].name, "[memory]");
    EXPECT_EQ(averages.rows[0].count, 2u);
    EXPECT_EQ(averages.rows[0].cpu_memory_bytes, -3);
    EXPECT_EQ(row(averages, "outer").cpu_memory_bytes, 110);
    EXPECT_EQ(row(averages, "outer").self_cpu_memory_bytes, 10);
    EXPECT_EQ(row(averages, "outer").device_memory_bytes, 1000);
    EXPECT_EQ(row(averages, "inner").self_device_memory_bytes, 1000);
    EXPECT_EQ(averages.rows[3].name, "[OutOfMemory]");
    EXPECT_EQ(averages.rows[3].count, 1u);
    EXPECT_EQ(averages.rows[3].device_memory_bytes, 0);
}

TEST(Averages, TheRecordingCostCanBeSubtracted) {
    TraceFixture fixture;
    fixture.thread("main", {{"f", 0, 100, {{"g", 10, 20}, {"g", 40, 1}}}});
    fixture.value("key", {});
    fixture.data().costs = {{"range", 3}, {"range_with_values", 8}};
    const Trace trace = fixture.trace();
    Averages averages = key_averages(trace, {.nesting = true});
    EXPECT_EQ(row(averages, "g").self_overhead_ns, 0);
    EXPECT_EQ(row(averages, "g").overhead_ns, 0);
    EXPECT_EQ(row(averages, "f").self_overhead_ns, 11);
    EXPECT_EQ(row(averages, "f").overhead_ns, 11);
    subtract_overhead(averages);
    EXPECT_EQ(row(averages, "f").cpu_time_total_ns, 89);
    EXPECT_EQ(row(averages, "f").self_cpu_time_total_ns, 68);
    EXPECT_EQ(row(averages, "g").cpu_time_total_ns, 21);
    EXPECT_FALSE(key_averages(trace).rows[0].overhead_ns.has_value());
}

/// Random nested ranges of a few recursive functions, on one track of each thread.
Trace random_trace(std::size_t count, std::size_t threads) {
    TraceFixture fixture;
    for (const char* const name : {"a", "b", "c", "d", "e"}) fixture.site(name);
    TraceData& data = fixture.data();
    std::mt19937_64 random(5);
    std::int64_t latest = 0;
    for (std::size_t thread = 0; thread < threads; ++thread) {
        fixture.thread("thread " + std::to_string(thread), {});
        data.tracks.back().first_range = static_cast<Row>(data.range_start_ns.size());
        data.tracks.back().range_count = static_cast<Row>(count / threads);
        std::int64_t time = 0;
        std::vector<Row> open;
        const auto close = [&] {
            time += static_cast<std::int64_t>(random() % 30);
            data.range_duration_ns[open.back()] = time - data.range_start_ns[open.back()];
            open.pop_back();
        };
        for (std::size_t i = 0; i < count / threads; ++i) {
            while (!open.empty() && (open.size() >= 20 || random() % 100 < 45)) close();
            time += static_cast<std::int64_t>(random() % 20);
            data.range_parent.push_back(open.empty() ? kNoRow : open.back());
            data.range_depth.push_back(static_cast<std::uint32_t>(open.size()));
            open.push_back(static_cast<Row>(data.range_start_ns.size()));
            data.range_start_ns.push_back(time);
            data.range_duration_ns.push_back(0);
            data.range_self_ns.push_back(static_cast<std::int64_t>(random() % 100));
            // "e" is on the last thread only.
            data.range_site.push_back(static_cast<std::uint32_t>(random() % (thread + 1 == threads ? 5 : 4)));
            data.range_flags.push_back(random() % 50 == 0 ? kUnfinished : 0);
        }
        while (!open.empty()) close();
        latest = std::max(latest, time);
    }
    return fixture.window(latest / 100, latest).trace();
}

TEST(Averages, OfManyRangesAreThoseOfEachRangeAddedUp) {
    const Trace trace = random_trace(1'200'000, 3);  // enough for several parts
    const Averages averages =
        key_averages(trace, {.percentiles = true, .merge_repeated = false, .covered = true});
    const RangeColumns ranges = trace.ranges();
    ASSERT_EQ(averages.rows.size(), 5u);
    for (std::uint32_t site = 0; site < 5; ++site) {
        AverageRow expected;
        std::vector<std::int64_t> durations;
        Row first = kNoRow;
        std::set<Row> threads;
        for (Row range = 0; range < ranges.size(); ++range) {
            if (ranges.site[range] != site) continue;
            durations.push_back(trace.clipped_duration_ns(range));
            expected.cpu_time_total_ns += durations.back();
            expected.self_cpu_time_total_ns += ranges.self_ns[range];
            expected.unfinished += (ranges.flags[range] & kUnfinished) != 0;
            threads.insert(trace.tracks()[trace.track_of(range)].thread);
            if (first == kNoRow || ranges.start_ns[range] < ranges.start_ns[first]) first = range;
            Row around = ranges.parent[range];
            while (around != kNoRow && ranges.site[around] != site) around = ranges.parent[around];
            if (around == kNoRow) expected.covered_ns += durations.back();
        }
        std::sort(durations.begin(), durations.end());
        const AverageRow& found = row(averages, std::string(trace.string(trace.sites()[site].name)));
        EXPECT_EQ(found.count, durations.size());
        EXPECT_EQ(found.cpu_time_total_ns, expected.cpu_time_total_ns);
        EXPECT_EQ(found.self_cpu_time_total_ns, expected.self_cpu_time_total_ns);
        EXPECT_EQ(found.unfinished, expected.unfinished);
        EXPECT_EQ(found.covered_ns, expected.covered_ns);
        EXPECT_EQ(found.threads, threads.size());
        EXPECT_EQ(ranges.start_ns[found.first_range], ranges.start_ns[first]);
        EXPECT_EQ(found.min_ns, durations.front());
        EXPECT_EQ(found.max_ns, durations.back());
        EXPECT_EQ(found.p50_ns, durations[(durations.size() * 50 + 99) / 100 - 1]);
        EXPECT_EQ(found.p90_ns, durations[(durations.size() * 90 + 99) / 100 - 1]);
        EXPECT_EQ(found.p99_ns, durations[(durations.size() * 99 + 99) / 100 - 1]);
    }
    const Averages quick = key_averages(trace, {.merge_repeated = false});
    ASSERT_EQ(quick.rows.size(), 5u);
    for (std::size_t i = 0; i < quick.rows.size(); ++i) {
        EXPECT_EQ(quick.rows[i].name, averages.rows[i].name);
        EXPECT_EQ(quick.rows[i].cpu_time_total_ns, averages.rows[i].cpu_time_total_ns);
        EXPECT_EQ(quick.rows[i].unfinished, averages.rows[i].unfinished);
        EXPECT_EQ(quick.rows[i].threads, averages.rows[i].threads);
    }
}

}  // namespace
}  // namespace marey
