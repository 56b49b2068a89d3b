// device_tracks_test.cpp: device work, its tracks, arrows and values.
#include <gtest/gtest.h>

#include <marey/validate.h>

#include "collect/device_fixture.h"
#include "collect/trace_builder.h"
#include "collect/trace_outline_fixture.h"
#include "trace/trace_difference_fixture.h"

namespace marey {
namespace {

using testing::device_session;
using testing::find_fault;
using testing::kDevice;
using testing::kMain;
using testing::launches;
using testing::LogWriter;
using testing::outline;
using testing::problem_codes;
using testing::put_call;
using testing::put_work;
using testing::WorkSpec;

class DeviceTracks : public ::testing::Test {
  protected:
    DeviceTracks() { log.born(kMain, "main", 1, 100).born(kDevice, "cuda", 1, 0); }

    void launch(std::string_view name, std::uint64_t start, std::uint64_t end, std::uint32_t correlation) {
        put_call(log, kDevice, {.name = name, .start = start, .end = end, .correlation = correlation});
    }
    void work(const WorkSpec& spec) { put_work(log, kDevice, spec); }
    Trace build(const LogWriter::SessionParts& parts = device_session(), std::uint64_t start = 1,
                std::uint64_t stop = 1000) {
        log.start(5, start, parts).stop(5, stop);
        return built(5);
    }
    Trace built(std::uint64_t session) {
        const Trace trace = build_trace(log.raw(), {.session = session});
        EXPECT_EQ(find_fault(trace), "");
        for (const Violation& violation : validate(trace)) {
            if (violation.rule != "unread") ADD_FAILURE() << violation.rule << violation.example;
        }
        return trace;
    }
    LogWriter log;
};

std::string values_of(const Trace& trace, Row row) {
    std::string text;
    for (const Argument& argument : trace.range_arguments(row)) {
        text += std::string(trace.string(argument.key)) + "=";
        if (argument.kind == ValueKind::Int) text += std::to_string(argument.integer);
        if (argument.kind == ValueKind::Double) text += std::to_string(argument.real);
        for (std::uint32_t i = 0; argument.kind == ValueKind::List && i < argument.list.count; ++i)
            text += (i == 0 ? "" : ",") + std::to_string(trace.list_items()[argument.list.first + i].integer);
        text += "; ";
    }
    return text;
}

TEST_F(DeviceTracks, EachQueueHasOneWithArrowsFromTheCalls) {
    log.thread(kMain).range("range", 10, 100, 0);
    launch("launch a", 20, 30, 1);
    launch("launch b", 32, 38, 2);
    launch("launch c", 40, 50, 3);
    work({.name = "c", .start = 60, .end = 70, .correlation = 3, .stream = 8});
    work({.name = "a", .start = 45, .end = 55, .correlation = 1});
    work({.name = "b", .start = 55, .end = 75, .correlation = 2});
    const Trace trace = build();
    EXPECT_EQ(outline(trace),
              "main: range 10-100 { launch a 20-30 launch b 32-38 launch c 40-50 }\n"
              "stream 7: a 45-55 b 55-75\nstream 8: c 60-70\n");
    EXPECT_EQ(launches(trace), "launch a>a launch b>b launch c>c");
    EXPECT_EQ(problem_codes(trace), "");
    const TrackInfo& track = trace.tracks()[2];
    EXPECT_EQ(track.kind, TrackKind::Device);
    EXPECT_EQ(track.device.type, DeviceType::Cuda);
    EXPECT_EQ(track.stream, 8);
    EXPECT_EQ(trace.threads()[track.thread].os_tid, 0);
    EXPECT_EQ(trace.ranges().self_ns[trace.tracks()[1].first_range], 10);
}

TEST_F(DeviceTracks, TwoDevicesWithTheSameQueueNumberAreSeparate) {
    work({.name = "a", .start = 45, .end = 55});
    work({.name = "b", .start = 45, .end = 55, .device = 1});
    work({.name = "c", .start = 45, .end = 55, .type = DeviceType::Other});
    const Trace trace = build(device_session(kDeviceAll, testing::kCudaBit | 1u << 20));
    EXPECT_EQ(outline(trace), "stream 7: a 45-55\nstream 7: b 45-55\nstream 7: c 45-55\n");
    EXPECT_EQ(trace.tracks()[1].device.index, 1);
    EXPECT_EQ(trace.tracks()[2].device.type, DeviceType::Other);
    EXPECT_NE(trace.threads()[trace.tracks()[0].thread].id, trace.threads()[trace.tracks()[1].thread].id);
}

TEST_F(DeviceTracks, AQueueIsTheSameThreadInEveryTraceOfAProcess) {
    work({.name = "a", .start = 45, .end = 55});
    const Trace first = build(device_session(), 1, 100);
    log.born(10, "late", 110, 300).thread(10).range("range", 120, 130, 0);
    work({.name = "b", .start = 145, .end = 155});
    log.start(6, 105, device_session()).stop(6, 200);
    const std::vector<Trace> traces{first, built(6)};
    const Trace joined = join_traces(traces);
    EXPECT_EQ(outline(joined), "stream 7: a 45-55 b 145-155\nlate: range 120-130\n");
}

TEST_F(DeviceTracks, AGraphLaunchHasManyKernels) {
    launch("cudaGraphLaunch", 20, 30, 4);
    for (std::uint64_t i = 0; i < 5; ++i)
        work({.name = "node",
              .start = 40 + 10 * i,
              .end = 50 + 10 * i,
              .correlation = 4,
              .graph_node = 70 + i});
    const Trace trace = build();
    EXPECT_EQ(trace.links().size(), 5u);
    const Row row = trace.tracks()[1].first_range;
    EXPECT_EQ(values_of(trace, row + 2),
              "correlation=4; registers per thread=32; shared memory=1040; grid=4,2,1; block=128,1,1; "
              "graph node id=72; ");
}

TEST_F(DeviceTracks, OfACallAndOneInsideItTheOuterOneLaunches) {
    launch("runtime", 20, 30, 4);
    put_call(log, kDevice, {.name = "driver", .start = 22, .end = 28, .correlation = 4, .is_driver = true});
    work({.name = "a", .start = 45, .end = 55, .correlation = 4});
    EXPECT_EQ(launches(build()), "runtime>a");
}

TEST_F(DeviceTracks, EqualNumbersOfTwoLogsAreNotMixedUp) {
    log.born(8, "other", 1, 0);
    put_call(log, 8, {.name = "theirs", .start = 20, .end = 30, .correlation = 1, .type = DeviceType::Other});
    launch("ours", 40, 50, 1);
    work({.name = "a", .start = 60, .end = 70, .correlation = 1});
    put_work(log, 8, {.name = "b", .start = 60, .end = 70, .correlation = 1, .type = DeviceType::Other});
    EXPECT_EQ(launches(build(device_session(kDeviceAll, testing::kCudaBit | 1u << 20))), "theirs>b ours>a");
}

TEST_F(DeviceTracks, TimedWorkBelongsToTheRangeOfItsId) {
    log.thread(kMain).long_range("op", 10, 20, 1, 0, log.values().facts(-1, 0, 99).bytes(), Scope::Function);
    log.thread(kMain).long_range("around", 5, 50, 0, 0, log.values().facts(-1, 0, 98).bytes());
    work({.name = "op", .start = 45, .end = 55, .kind = DeviceWorkKind::Timed, .range = 99});
    work({.name = "lost", .start = 60, .end = 65, .kind = DeviceWorkKind::Timed, .range = 1});
    const Trace trace = build(device_session(kDeviceAll | kDeviceTimes));
    EXPECT_EQ(launches(trace), "op>op");
    EXPECT_EQ(problem_codes(trace), "");
    ASSERT_EQ(trace.ranges().size(), 3u);  // "lost" belongs to no range that the session has
    const LinkInfo& link = trace.links()[0];
    EXPECT_EQ(trace.ranges().start_ns[link.to], trace.ranges().start_ns[link.from]);
    EXPECT_EQ(trace.ranges().duration_ns[link.to], 10);
}

TEST_F(DeviceTracks, WorkWithoutACallIsCounted) {
    launch("ours", 40, 50, 1);
    work({.name = "a", .start = 60, .end = 70, .correlation = 2});
    work({.name = "b", .start = 70, .end = 80});
    work({.name = "c", .start = 90, .end = 95, .kind = DeviceWorkKind::Wait});
    const Trace trace = build();
    EXPECT_EQ(trace.links().size(), 0u);
    EXPECT_EQ(problem_codes(trace), "device_work_without_call=2");
    log.start(6, 1, device_session(kDeviceKernels)).stop(6, 1000);
    EXPECT_EQ(problem_codes(built(6)), "");  // it requested no calls
}

// K14
TEST_F(DeviceTracks, WorkThatOverlapsGoesToAdditionalTracks) {
    work({.name = "a", .start = 10, .end = 50});
    work({.name = "b", .start = 20, .end = 30});
    work({.name = "c", .start = 25, .end = 60});
    work({.name = "d", .start = 30, .end = 40});
    work({.name = "e", .start = 50, .end = 70});
    const Trace trace = build();
    EXPECT_EQ(outline(trace),
              "stream 7: a 10-50 e 50-70\nstream 7 overlapping: b 20-30 d 30-40\n"
              "stream 7 overlapping 2: c 25-60\n");
    EXPECT_EQ(trace.tracks()[1].kind, TrackKind::Overlap);
    EXPECT_EQ(trace.tracks()[0].thread, trace.tracks()[2].thread);
    EXPECT_EQ(trace.tracks()[2].stream, 7);
}

TEST_F(DeviceTracks, WaitsAndOverheadAreOnAsyncTracks) {
    launch("sync", 10, 60, 3);
    work({.name = "a", .start = 10, .end = 50});
    work({.name = "Stream sync", .start = 12, .end = 50, .correlation = 3, .kind = DeviceWorkKind::Wait});
    work({.name = "Event sync", .start = 20, .end = 45, .kind = DeviceWorkKind::Wait});
    work({.name = "Buffer flush", .start = 30, .end = 31, .stream = ~0u, .kind = DeviceWorkKind::Overhead});
    const Trace trace = build();
    EXPECT_EQ(outline(trace),
              "main: sync 10-60\ncuda 0 async: Buffer flush 30-31~\nstream 7: a 10-50\n"
              "stream 7 async: Stream sync 12-50~\nstream 7 async 2: Event sync 20-45~\n");
    EXPECT_EQ(trace.links().size(), 0u);
}

// K15
TEST_F(DeviceTracks, WorkAcrossTheWindowIsCutAndMarked) {
    work({.name = "before", .start = 10, .end = 90});
    work({.name = "across the start", .start = 90, .end = 110});
    work({.name = "inside", .start = 120, .end = 130});
    work({.name = "across the stop", .start = 190, .end = 230});
    work({.name = "after", .start = 240, .end = 250});
    const Trace trace = build(device_session(), 100, 200);
    EXPECT_EQ(outline(trace), "stream 7: across the start 90-110< inside 120-130 across the stop 190-200>\n");
    EXPECT_EQ(trace.ranges().self_ns[0], 10);
}

TEST_F(DeviceTracks, ASessionHasTheWorkThatItRequested) {
    work({.name = "kernel", .start = 10, .end = 20});
    work({.name = "copy", .start = 20, .end = 30, .kind = DeviceWorkKind::Copy, .bytes = 4096});
    work({.name = "set", .start = 30, .end = 40, .kind = DeviceWorkKind::Set, .bytes = 512});
    work({.name = "other", .start = 40, .end = 50, .type = DeviceType::Other});
    std::uint64_t session = 10;
    const auto shown = [&](std::uint32_t activities, std::uint32_t types) {
        ++session;
        log.start(session, 1, device_session(activities, types)).stop(session, 1000);
        return outline(built(session));
    };
    EXPECT_EQ(shown(kDeviceCopies, testing::kCudaBit), "stream 7: copy 20-30\n");
    EXPECT_EQ(shown(kDeviceKernels | kDeviceSets, testing::kCudaBit), "stream 7: kernel 10-20 set 30-40\n");
    EXPECT_EQ(shown(kDeviceAll, 1u << 20), "stream 7: other 40-50\n");
    EXPECT_EQ(shown(0, testing::kCudaBit), "");
    EXPECT_EQ(shown(kDeviceAll, 0), "");
}

TEST_F(DeviceTracks, CopiesHaveBytesAndBandwidth) {
    work({.name = "Memcpy HtoD",
          .start = 20,
          .end = 40,
          .kind = DeviceWorkKind::Copy,
          .bytes = 4000,
          .context = 3});
    EXPECT_EQ(values_of(build(), 0), "context=3; bytes=4000; memory bandwidth (GB/s)=200.000000; ");
}

// K9
TEST_F(DeviceTracks, ValuesOfTheSourceComeBeforeTheFixedOnes) {
    work({.name = "a", .start = 20, .end = 40, .values = log.values().integer("priority", 2).bytes()});
    work({.name = "b", .start = 50, .end = 60, .correlation = 6});
    const Trace trace = build();
    EXPECT_EQ(values_of(trace, 0).rfind("priority=2; registers", 0), 0u) << values_of(trace, 0);
    EXPECT_EQ(values_of(trace, 1).rfind("correlation=6; registers", 0), 0u);
}

TEST_F(DeviceTracks, SymbolsAreDemangled) {
    work({.name = "_Z3addPfi", .start = 20, .end = 40});
    work({.name = "plain_name", .start = 50, .end = 60});
    const Trace trace = build();
    EXPECT_EQ(trace.range_name(0), "add(float*, int)");
    const SiteInfo& site = trace.sites()[trace.ranges().site[0]];
    EXPECT_EQ(trace.string(site.raw_name), "_Z3addPfi");
    EXPECT_EQ(trace.string(site.category), "kernel");
    EXPECT_EQ(trace.string(site.file), "");
    EXPECT_EQ(trace.sites()[trace.ranges().site[1]].raw_name, 0u);
}

TEST_F(DeviceTracks, ASessionOfOneThreadHasTheWorkThatItsCallsLaunched) {
    log.born(2, "worker", 1, 200);
    log.thread(kMain).range("main's", 10, 100, 0);
    log.thread(2).range("another's", 10, 100, 0);
    launch("mine", 20, 30, 1);
    put_call(log, kDevice, {.name = "theirs", .start = 20, .end = 30, .os_tid = 200, .correlation = 2});
    work({.name = "a", .start = 40, .end = 50, .correlation = 1});
    work({.name = "b", .start = 50, .end = 60, .correlation = 2});
    LogWriter::SessionParts parts = device_session();
    parts.thread = kMain;
    const Trace trace = build(parts);
    EXPECT_EQ(outline(trace), "main: main's 10-100 { mine 20-30 }\nstream 7: a 40-50\n");
    EXPECT_EQ(problem_codes(trace), "");
}

TEST_F(DeviceTracks, IncompleteAndUnknownRecordsAreCountedAndSkipped) {
    const std::uint32_t site = testing::work_site(log, DeviceWorkKind::Kernel, "x");
    auto& thread = log.thread(kDevice);
    using detail::RecordKind;
    thread.put(RecordKind::DeviceWork, 1, site, 20, 30, 1, std::vector<std::byte>(40));  // a kernel has 48
    thread.put(RecordKind::DeviceWork, 2, site, 20, 30, 1);
    thread.put(RecordKind::DeviceWork, 99, site, 20, 30, 1, std::vector<std::byte>(64));
    thread.put(static_cast<RecordKind>(0xc7), 1, site, 20, 30, 1);
    work({.name = "whole", .start = 40, .end = 50});
    const Trace trace = build();
    EXPECT_EQ(outline(trace), "stream 7: whole 40-50\n");
    EXPECT_EQ(problem_codes(trace), "device_work_without_call unknown_records=2 damaged_device=2");
}

TEST_F(DeviceTracks, AKilledProgramsLogShowsTheDeliveredWork) {
    log.start(5, 1, device_session());
    log.thread(kMain).open("open", 10, 0);
    launch("launch", 20, 30, 1);
    work({.name = "a", .start = 40, .end = 50, .correlation = 1});
    const Trace trace = built(5);
    EXPECT_EQ(outline(trace), "main: open 10-50> { launch 20-30 }\nstream 7: a 40-50\n");
    EXPECT_EQ(launches(trace), "launch>a");
}

}  // namespace
}  // namespace marey
