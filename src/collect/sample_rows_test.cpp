// sample_rows_test.cpp: samples that were written by hand.
#include "collect/sample_rows.h"

#include <gtest/gtest.h>

#include "collect/log_fixture.h"
#include "collect/packed_capture.h"
#include "collect/trace_builder.h"
#include "collect/trace_outline_fixture.h"
#include "record/stack_numbers.h"

namespace marey {
namespace {

using namespace detail;
using testing::LogWriter;
using testing::problem_codes;
using testing::ThreadLog;

constexpr std::uint8_t kSample = static_cast<std::uint8_t>(RecordKind::Sample);
constexpr std::uint32_t kRuns = 0, kWaits = 1;

/// A thread's chunk of samples: a log that is not a thread has those of all threads.
ThreadLog& samples_of(LogWriter& log, std::uint32_t thread) {
    return log.thread(9).switch_to(thread, 0);
}

/// Stacks 1: main, 2: main < f (line 5), 3: main < f (line 5) < a native frame.
RawLog with_stacks(LogWriter& log) {
    log.module("/lib/a.so", "abcd", 0x1000);
    const std::uint64_t main = log.site("x.py(1): main", Scope::PythonFunction, "/x.py", 1);
    const std::uint32_t f = log.site("x.py(3): f", Scope::PythonFunction, "/x.py", 3);
    RawLog raw = log.raw();
    const std::vector<StackNode> nodes{
        {main | 2ull << kFrameLineShift, 0, 1}, {kFramePlace | 7, 1, 1}, {kFrameNative | 0x1230, 2, 1}};
    append_stack_nodes(raw.names, 1, nodes);
    CodePlaceRecord place{{}, 7, f, 5, 0};
    place.head = {static_cast<std::uint16_t>(NameKind::CodePlace), 0, sizeof place};
    ModuleExtentRecord extent{{}, 1, 0, 0x1000, 0x2000};
    extent.head = {static_cast<std::uint16_t>(NameKind::ModuleExtent), 0, sizeof extent};
    for (const auto record : {std::as_bytes(std::span(&place, 1)), std::as_bytes(std::span(&extent, 1))})
        raw.names.insert(raw.names.end(), record.begin(), record.end());
    return raw;
}

std::string stack_text(const Trace& trace, Row row) {
    std::string text;
    for (; row != kNoRow; row = trace.stacks()[row].outer) {
        const FrameInfo& frame = trace.frames()[trace.stacks()[row].frame];
        text += std::string(trace.string(frame.name)) + ":" + std::to_string(frame.line) + "@" +
                std::string(trace.string(frame.module)) + "+" + std::to_string(frame.offset) + " ";
    }
    return text;
}

TEST(SampleRows, SamplesHaveStacksWeightsAndTheInnermostRange) {
    LogWriter log;
    log.start(1, 0, {.option_bits = kOptionSamples}).stop(1, 1000);
    log.thread(1).range("inner", 100, 200, 1).range("outer", 50, 300, 0);
    samples_of(log, 1)
        .compact(kSample, 3, 150 - 7, 150, kRuns)  // 7 ns of CPU time
        .compact(kSample, 2, 250 - 9, 250, 2 | kSampleTorn)
        .compact(kSample, 0, 400 - 1, 400, kRuns);
    const RawLog raw = with_stacks(log);
    for (const RawLog& each : {raw, unpack_capture(pack_capture(raw), "packed")}) {
        const Trace trace = build_trace(each);
        EXPECT_EQ(testing::find_fault(trace), "");
        EXPECT_EQ(problem_codes(trace), "");
        const SampleColumns samples = trace.samples();
        ASSERT_EQ(samples.size(), 3u);
        EXPECT_EQ(trace.threads()[samples.thread[0]].id, 1u);
        EXPECT_EQ(samples.time_ns[0], 150);
        EXPECT_EQ(samples.cpu_ns[0], 7);
        EXPECT_EQ(samples.duration_ns[0], 0);
        EXPECT_EQ(trace.range_name(samples.range[0]), "inner");
        EXPECT_EQ(stack_text(trace, samples.stack[0]),
                  "/lib/a.so+0x230:0@/lib/a.so+560 x.py(3): f:5@+0 x.py(1): main:2@+0 ");
        EXPECT_EQ(samples.state[1], SampleState::Preempted);
        EXPECT_EQ(trace.range_name(samples.range[1]), "outer");
        EXPECT_EQ(samples.stack[1], trace.stacks()[samples.stack[0]].outer);
        EXPECT_EQ(samples.range[2], kNoRow);
        EXPECT_EQ(samples.stack[2], kNoRow);
    }
}

TEST(SampleRows, PartsOfOneWaitBecomeOneSample) {
    LogWriter log;
    log.start(1, 10, {.option_bits = kOptionSamples}).stop(1, 1000);
    samples_of(log, 2)
        .compact(kSample, 2, 0, 100, kWaits)  // began before the window
        .compact(kSample, 2, 100, 300, kWaits)
        .compact(kSample, 2, 300, 400, kWaits)
        .compact(kSample, 3, 400, 500, kWaits)
        .compact(kSample, 3, 600, 2000, kWaits);
    const Trace trace = build_trace(with_stacks(log));
    const SampleColumns samples = trace.samples();
    ASSERT_EQ(samples.size(), 3u);
    EXPECT_EQ(samples.time_ns[0], 10);
    EXPECT_EQ(samples.duration_ns[0], 390);
    EXPECT_EQ(samples.duration_ns[1], 100);
    EXPECT_EQ(samples.duration_ns[2], 400);  // to the end of the window
    EXPECT_EQ(samples.state[2], SampleState::Waiting);
    EXPECT_EQ(samples.cpu_ns[2], 0);
}

TEST(SampleRows, OnlySessionsThatAskedForSamplesHaveThem) {
    LogWriter log;
    log.start(1, 0, {.option_bits = 0}).stop(1, 1000);
    samples_of(log, 1).compact(kSample, 3, 150, 150, kRuns);
    EXPECT_EQ(build_trace(with_stacks(log)).samples().size(), 0u);
}

TEST(SampleRows, TheFactsOfSamplingAreThoseOfTheSession) {
    const auto facts = [](std::uint64_t lost) {
        SamplingRecord record{};
        record.clock = static_cast<std::uint32_t>(SamplingClock::CpuClock);
        record.rate = 250;
        record.torn = 2 * lost;
        record.lost = lost;
        return record;
    };
    LogWriter log;
    log.journal(JournalKind::Sampling, facts(3));
    log.start(1, 0, {.option_bits = kOptionSamples});
    log.journal(JournalKind::Sampling, facts(5));
    log.stop(1, 1000);
    log.journal(JournalKind::Sampling, facts(9));
    samples_of(log, 1).compact(kSample, 0, 100, 100 + 4'000'000, kRuns).compact(kSample, 0, 100, 200, kWaits);
    const Trace trace = build_trace(log.raw());
    ASSERT_EQ(trace.sampling().size(), 1u);
    const SamplingInfo& sampling = trace.sampling()[0];
    EXPECT_EQ(trace.string(sampling.clock), "cpu_clock");
    EXPECT_EQ(sampling.rate_asked, 250);
    EXPECT_EQ(sampling.lost, 2u);
    EXPECT_EQ(sampling.torn, 4u);
    EXPECT_EQ(sampling.samples, 0u);  // the other one was after the window
}

TEST(SampleRows, DamagedStacksOfSamplesEndWhereTheyAreDamaged) {
    LogWriter log;
    log.start(1, 0, {.option_bits = kOptionSamples}).stop(1, 1000);
    samples_of(log, 1)
        .compact(kSample, 1, 10, 10, kRuns)
        .compact(kSample, 2, 20, 20, kRuns)
        .compact(kSample, 3, 30, 30, kRuns)
        .compact(kSample, kMaxSites - 1, 40, 40, kRuns)
        .compact(kSample, 1, 50, 50, 3);  // no state
    RawLog raw = log.raw();
    const std::vector<StackNode> nodes{
        {kFramePlace | 9, 0, 1}, {kFrameNative | 0x77, 2, 1}, {kFrameNative | 0x88, 4, 1}};
    append_stack_nodes(raw.names, 1, nodes);
    const Trace trace = build_trace(raw);
    EXPECT_EQ(testing::find_fault(trace), "");
    ASSERT_EQ(trace.samples().size(), 4u);
    EXPECT_EQ(stack_text(trace, trace.samples().stack[0]), "??:0@+0 ");
    EXPECT_EQ(stack_text(trace, trace.samples().stack[1]), "0x77:0@+119 ");
    EXPECT_EQ(stack_text(trace, trace.samples().stack[2]), "0x88:0@+136 ");
    EXPECT_EQ(trace.samples().stack[3], kNoRow);
}

}  // namespace
}  // namespace marey
