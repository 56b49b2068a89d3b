// suspended_calls_test.cpp: calls assembled from their parts, and task tracks.
#include <gtest/gtest.h>
#include <marey/suspended_calls.h>

#include <string>
#include <utility>
#include <vector>

#include "trace/trace_assembler.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

class TaskProgram {
  public:
    TaskProgram() {
        const Row process = assembler_.add_process({.pid = 1});
        ThreadInfo info;
        info.process = process;
        info.id = 1;
        info.os_tid = 11;
        lane_ = assembler_.add_lane({assembler_.add_thread(info), TrackKind::Thread, {}, -1, 0});
    }
    TaskProgram& part(const std::string& name, std::int64_t start, std::int64_t end, std::uint64_t call,
                      std::uint32_t part) {
        SiteInfo site;
        site.name = assembler_.string(name);
        site.scope = Scope::PythonFunction;
        const auto range = assembler_.add_range(lane_, start, end - start, assembler_.site(site), 0);
        if (call != 0) assembler_.add_detail(range, -1, 0, 0, call, part);
        return *this;
    }
    TaskProgram& task(std::uint64_t call, const std::string& name) {
        assembler_.add_task(lane_, call, assembler_.string(name));
        return *this;
    }
    Trace finish() { return assembler_.finish(); }

  private:
    TraceAssembler assembler_;
    std::uint32_t lane_ = 0;
};

Trace two_tasks() {
    return TaskProgram()
        .part("main", 0, 10, 1, kFirstPart)
        .part("load", 2, 8, 2, kFirstPart)
        .part("other", 20, 30, 3, kFirstPart)
        .part("main", 40, 60, 1, 0)
        .part("load", 41, 50, 2, kLastPart)
        .part("other", 70, 80, 3, kLastPart)
        .part("main", 90, 100, 1, kLastPart)
        .part("plain", 100, 110, 0, 0)
        .task(1, "first")
        .task(3, "second")
        .finish();
}

TEST(SuspendedCalls, LinksLeadFromEachPartToTheNext) {
    const Trace trace = with_part_flows(two_tasks());
    std::vector<std::pair<std::int64_t, std::int64_t>> starts;
    for (const LinkInfo& link : trace.links()) {
        EXPECT_EQ(link.kind, LinkKind::Flow);
        EXPECT_EQ(trace.string(link.name), "next part");
        starts.emplace_back(trace.ranges().start_ns[link.from], trace.ranges().start_ns[link.to]);
    }
    const std::vector<std::pair<std::int64_t, std::int64_t>> wanted{{0, 40}, {2, 41}, {20, 70}, {40, 90}};
    EXPECT_EQ(starts, wanted);
    EXPECT_EQ(with_part_flows(trace).links().size(), 4u) << "given once";
    EXPECT_EQ(with_part_flows(with_task_tracks(two_tasks())).links().size(), 4u) << "whole calls have none";
    EXPECT_TRUE(with_part_flows(TaskProgram().part("plain", 0, 10, 0, 0).finish()).links().empty());
}

TEST(SuspendedCalls, LinksOfACallThatNeverEndsEnd) {
    TaskProgram program;
    for (int i = 0; i < 5000; ++i)
        program.part("gen", i * 10, i * 10 + 5, 1, i == 0 ? std::uint32_t{kFirstPart} : 0);
    program.part("other", 60'000, 60'001, 2, kFirstPart).part("other", 60'010, 60'011, 2, kLastPart);
    EXPECT_EQ(with_part_flows(program.finish()).links().size(), 999u + 1u);
}

TEST(SuspendedCalls, EachCallIsARow) {
    const Trace trace = two_tasks();
    const std::vector<SuspendedCall> calls = suspended_calls(trace);
    ASSERT_EQ(calls.size(), 3u);
    EXPECT_EQ(trace.range_name(calls[0].first_part), "main");
    EXPECT_EQ(calls[0].start_ns, 0);
    EXPECT_EQ(calls[0].end_ns, 100);
    EXPECT_EQ(calls[0].running_ns, 40);
    EXPECT_EQ(calls[0].suspended_ns, 60);
    EXPECT_EQ(calls[0].parts, 3u);
    EXPECT_TRUE(calls[0].is_finished);
    EXPECT_FALSE(calls[0].began_before);
    EXPECT_EQ(trace.string(calls[0].task), "first");
    EXPECT_EQ(trace.string(calls[1].task), "first");
    EXPECT_EQ(trace.string(calls[2].task), "second");
}

TEST(SuspendedCalls, OneWithoutItsEndsIsMarked) {
    const std::vector<SuspendedCall> calls = suspended_calls(TaskProgram().part("a", 5, 9, 4, 0).finish());
    ASSERT_EQ(calls.size(), 1u);
    EXPECT_TRUE(calls[0].began_before);
    EXPECT_FALSE(calls[0].is_finished);
    EXPECT_EQ(calls[0].task, 0u);
}

TEST(SuspendedCalls, TasksHaveRunAndAwaitTimes) {
    const Trace trace = two_tasks();
    const std::vector<TaskTimes> rows = tasks(trace);
    ASSERT_EQ(rows.size(), 2u);
    EXPECT_EQ(trace.string(rows[0].name), "first");
    EXPECT_EQ(trace.string(rows[0].coroutine), "main");
    EXPECT_EQ(rows[0].run_ns, 40);
    EXPECT_EQ(rows[0].await_ns, 60);
    EXPECT_EQ(rows[0].steps, 3u);
    EXPECT_EQ(rows[0].threads, std::vector<Row>{0});
    EXPECT_EQ(trace.string(rows[1].name), "second");
    EXPECT_EQ(rows[1].run_ns, 20);
}

/// `track: name start-end ...` of the added tracks.
std::string tracks_of(const Trace& trace) {
    EXPECT_EQ(find_damage(trace.data()), "");
    std::string text;
    for (const TrackInfo& track : trace.tracks()) {
        if (track.kind != TrackKind::Async) continue;
        text += std::string(trace.string(track.name)) + ":";
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            text += " " + std::string(trace.ranges().depth[row], '>') + std::string(trace.range_name(row)) +
                    " " + std::to_string(trace.ranges().start_ns[row]) + "-" +
                    std::to_string(trace.ranges().start_ns[row] + trace.ranges().duration_ns[row]);
        }
        text += "\n";
    }
    return text;
}

TEST(TaskTracks, EachTaskHasATrackWithItsCallsInIt) {
    const Trace trace = with_task_tracks(two_tasks());
    EXPECT_EQ(tracks_of(trace),
              "first: first 0-100 >main 0-100 >>load 2-50\n"
              "second: second 20-80 >other 20-80\n");
    const Row task = trace.tracks()[1].first_range;
    ASSERT_EQ(trace.range_arguments(task).size(), 2u);
    EXPECT_EQ(trace.range_arguments(task)[0].integer, 40);
    EXPECT_EQ(trace.range_arguments(task)[1].integer, 60);
}

TEST(TaskTracks, ATraceWithoutTasksIsUnchanged) {
    const Trace trace = TaskProgram().part("a", 5, 9, 4, 0).finish();
    EXPECT_EQ(&with_task_tracks(trace).data(), &trace.data());
}

TEST(TaskTracks, TasksWithTheSameNameShareTracksIfTheyDoNotOverlap) {
    TaskProgram program;
    program.part("a", 0, 10, 1, 3).part("a", 20, 30, 2, 1).part("a", 25, 28, 3, 3).part("a", 40, 50, 2, 2);
    const Trace trace = program.task(1, "w").task(2, "w").task(3, "w").finish();
    EXPECT_EQ(tracks_of(with_task_tracks(trace)),
              "w: w 0-10 >a 0-10 w 20-50 >a 20-50\n"
              "w 2: w 25-28 >a 25-28\n");
}

TEST(TaskTracks, ThousandsOfTasksShareTracks) {
    TaskProgram program;
    for (std::int64_t i = 0; i < 1500; ++i) {
        const auto call = static_cast<std::uint64_t>(i + 1);
        program.part("a", 10 * i, 10 * i + 5, call, 3).task(call, "task " + std::to_string(i));
    }
    const Trace trace = with_task_tracks(program.finish());
    EXPECT_EQ(trace.tracks().size(), 1u + 1001u);
    EXPECT_EQ(trace.string(trace.tracks().back().name), "tasks");
}

}  // namespace
}  // namespace marey
