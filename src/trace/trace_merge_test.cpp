// trace_merge_test.cpp: merging traces of several processes.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <marey/error.h>
#include <marey/merge.h>

#include "base/process_text.h"
#include "trace/process_links.h"
#include "trace/random_trace_fixture.h"
#include "trace/trace_assembler.h"
#include "trace/trace_data.h"
#include "trace/trace_difference_fixture.h"
#include "trace/trace_dump_fixture.h"

namespace marey {
namespace {

std::vector<std::string> sorted_lines(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream input(text);
    for (std::string line; std::getline(input, line);) lines.push_back(line);
    std::sort(lines.begin(), lines.end());
    return lines;
}

Row process_of(const TraceData& data, Row range) {
    const auto after =
        std::upper_bound(data.tracks.begin(), data.tracks.end(), range,
                         [](Row row, const TrackInfo& track) { return row < track.first_range; });
    return data.threads[(after - 1)->thread].process;
}

/// A random trace whose processes are children of the first one and send messages to one another, without
/// links between processes that nothing else shows.
Trace random_tree(unsigned seed) {
    auto data = std::make_shared<TraceData>(testing::random_trace(seed, {.max_ranges = 200}).data());
    std::erase_if(data->links, [&](const LinkInfo& link) {
        return process_of(*data, link.from) != process_of(*data, link.to);
    });
    const auto add_string = [&](std::string text) {
        data->strings.push_back(std::move(text));
        return static_cast<StringId>(data->strings.size() - 1);
    };
    const StringId clock = add_string("boot/17");
    for (std::size_t i = 0; i < data->processes.size(); ++i) {
        ProcessInfo& process = data->processes[i];
        process.start = 50 + i;
        process.clock = clock;
        process.pid_namespace = 9;
        if (i != 0) process.ancestors = add_string("7:8:9 " + ancestor_text(data->processes[0].pid, 50, 9));
    }
    for (std::size_t i = 0; i < data->threads.size(); ++i)
        data->threads[i].birth_ns = data->window.start_ns + static_cast<std::int64_t>(10 * i) + 1;
    std::mt19937_64 random(seed);
    for (std::uint64_t number = 1; number < 20 && !data->range_start_ns.empty(); ++number) {
        for (const bool is_received : {false, true}) {
            MessageInfo message;
            message.range = static_cast<Row>(random() % data->range_start_ns.size());
            const auto after =
                std::upper_bound(data->tracks.begin(), data->tracks.end(), message.range,
                                 [](Row row, const TrackInfo& track) { return row < track.first_range; });
            message.thread = (after - 1)->thread;
            message.time_ns = data->range_start_ns[message.range];
            message.sender = 77;
            message.number = number;
            message.is_received = is_received;
            data->messages.push_back(message);
        }
    }
    connect_processes(*data);
    return Trace(std::move(data));
}

TEST(TraceMerge, ATraceThatWasCutByProcessIsTheSameAgain) {
    for (unsigned seed = 0; seed < 300; ++seed) {
        const Trace whole = random_tree(seed);
        std::vector<Trace> parts;
        for (Row row = 0; row < whole.processes().size(); ++row) {
            auto part = std::make_shared<TraceData>(select_processes(whole, {row}).data());
            ASSERT_EQ(find_damage(*part), "") << seed;
            if (row != 0) part->problems.clear();  // they are about the trace as a whole
            parts.emplace_back(std::move(part));
        }
        const Trace merged = merge_traces(std::move(parts));
        ASSERT_EQ(find_damage(merged.data()), "") << seed;
        ASSERT_EQ(sorted_lines(testing::dump_trace(merged)), sorted_lines(testing::dump_trace(whole)))
            << seed;
        EXPECT_EQ(merged.clock().pairs, whole.clock().pairs * whole.processes().size()) << seed;
    }
}

Trace process_trace(std::int64_t pid, std::int64_t start, std::int64_t end, const std::string& clock,
                    std::int64_t realtime_offset_ns = 0) {
    TraceAssembler assembler;
    assembler.set_window(start, end);
    ProcessInfo process;
    process.pid = pid;
    process.start = static_cast<std::uint64_t>(pid);
    process.clock = assembler.string(clock);
    process.realtime_offset_ns = realtime_offset_ns;
    ThreadInfo thread;
    thread.process = assembler.add_process(process);
    thread.id = 1;
    thread.os_tid = pid;
    thread.birth_ns = start;
    Lane lane;
    lane.thread = assembler.add_thread(thread);
    const auto track = assembler.add_lane(lane);
    assembler.add_range(track, start - 5, end - start + 20, assembler.site(assembler.named("outer")));
    assembler.add_range(track, start + 1, 2, assembler.site(assembler.named("inner")));
    return assembler.finish();
}

TEST(TraceMerge, WindowsMayOverlapAndRangesStayInTheirOwn) {
    const Trace merged = merge_traces({process_trace(1, 100, 200, "a/1"), process_trace(2, 150, 180, "a/1")});
    ASSERT_EQ(merged.processes().size(), 2U);
    EXPECT_EQ(merged.window().start_ns, 100);
    EXPECT_EQ(merged.window().end_ns, 200);
    const RangeColumns ranges = merged.ranges();
    ASSERT_EQ(ranges.size(), 4U);
    EXPECT_EQ(ranges.start_ns[2], 150);
    EXPECT_EQ(ranges.start_ns[2] + ranges.duration_ns[2], 180);
    EXPECT_EQ(ranges.parent[3], 2U);
    EXPECT_TRUE(merged.problems().empty());
}

TEST(TraceMerge, ProcessesOnAnotherClockArePlacedByWallClockTime) {
    const Trace merged = merge_traces(
        {process_trace(1, 100, 200, "a/1", 1000), process_trace(2, 100'000, 100'050, "b/1", -98'850)});
    EXPECT_EQ(merged.ranges().start_ns[2], 150);
    EXPECT_EQ(merged.window().end_ns, 200);
    EXPECT_EQ(merged.processes()[1].realtime_offset_ns, 1000);
    ASSERT_EQ(merged.problems().size(), 1U);
    EXPECT_EQ(merged.problems()[0].code, "clock_unknown");
}

TEST(TraceMerge, AReusedPidIsAnotherProcess) {
    auto later = std::make_shared<TraceData>(process_trace(1, 300, 400, "a/1").data());
    later->processes[0].start = 99;
    const Trace merged = merge_traces({process_trace(1, 100, 200, "a/1"), Trace(later)});
    EXPECT_EQ(merged.processes().size(), 2U);
    EXPECT_EQ(merged.threads().size(), 2U);
}

TEST(TraceMerge, AProgramThatReplacedAnotherOneIsItsChild) {
    auto later = std::make_shared<TraceData>(process_trace(1, 300, 400, "a/1").data());
    later->processes[0].command_line = 1;
    const Trace merged = merge_traces({process_trace(1, 100, 200, "a/1"), Trace(later)});
    ASSERT_EQ(merged.processes().size(), 2U);
    EXPECT_EQ(merged.processes()[1].parent, 0U);
    EXPECT_EQ(merged.processes()[1].origin, ProcessOrigin::Exec);
    ASSERT_EQ(merged.links().size(), 1U);
    EXPECT_EQ(merged.range_name(merged.links()[0].from), "outer");
    EXPECT_EQ(merged.string(merged.links()[0].name), "spawn");
}

TEST(TraceMerge, MergingAgainChangesNothing) {
    const Trace whole = random_tree(5);
    auto data = std::make_shared<TraceData>(whole.data());
    connect_processes(*data);
    EXPECT_EQ(testing::find_difference(*data, whole.data()), "");
    EXPECT_EQ(merge_traces({}).ranges().size(), 0U);
    EXPECT_EQ(&merge_traces({whole}).data(), &whole.data());
}

}  // namespace
}  // namespace marey
