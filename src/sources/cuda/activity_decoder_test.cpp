// activity_decoder_test.cpp: hand-made records, decoded into real sessions.
#include "sources/cuda/activity_decoder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>

#include <marey/range.h>
#include <marey/session.h>

#include "sources/cuda/fake_cuda_fixture.h"

namespace marey::cuda {
namespace {

CuptiResult name_of(std::uint32_t domain, std::uint32_t callback, const char** name) {
    *name = nullptr;
    if (domain == kRuntimeCalls && callback == 211) *name = "cudaLaunchKernel_v7000";
    if (domain == kDriverCalls && callback == 5) *name = "cuMemcpyHtoD_v2_ptds";
    return *name != nullptr ? kCuptiSuccess : 1;
}

class Decoding : public ::testing::Test {
  protected:
    Decoding() : clock_(device_ticks_per_second()), decoder_(cupti_, clock_) {
        cupti_.callback_name = &name_of;
        registered_device();
        session_.start({.profile_memory = true, .devices = {"test"}, .device_activities = kDeviceAll});
    }

    std::uint64_t now() const { return clock_.to_ns(device_ticks()); }

    template <class Record>
    void decode(const Record& record) {
        ActivityRecord head;
        static_assert(offsetof(Record, kind) == 0);
        std::memcpy(&head, &record, sizeof head);
        decoder_.decode(reinterpret_cast<const ActivityRecord&>(record), *registered_device().to);
    }

    WaitRecord stream_wait(std::uint32_t context) const {
        WaitRecord wait{};
        wait.kind = kActivitySynchronization;
        wait.type = 3;
        wait.context = context;
        wait.stream = 7;
        wait.event = ~0u;
        wait.start = now();
        wait.end = wait.start + 10;
        return wait;
    }
    KernelRecord kernel(const char* name, std::uint32_t correlation, std::uint64_t start, std::uint64_t end) {
        KernelRecord record{};
        record.kind = kActivityKernel;
        record.name = name;
        record.correlation = correlation;
        record.start = start;
        record.end = end;
        record.stream = 7;
        record.context = 1;
        record.grid[0] = 12;
        record.grid[1] = record.grid[2] = 1;
        record.block[0] = 256;
        record.block[1] = record.block[2] = 1;
        record.registers_per_thread = 32;
        record.static_shared = 100;
        record.dynamic_shared = 28;
        return record;
    }

    /// A device allocation.
    MemoryRecord allocation(std::uint64_t address, std::uint64_t bytes) const {
        MemoryRecord record{};
        record.kind = kActivityMemory;
        record.operation = 1;
        record.memory_kind = 3;
        record.address = address;
        record.bytes = bytes;
        record.time = now();
        return record;
    }

    /// A call on this thread.
    void decode_call(std::uint32_t domain, std::uint32_t callback, std::uint32_t correlation,
                     std::uint64_t start, std::uint64_t end) {
        RecordedCall call;
        call.domain = domain;
        call.callback = callback;
        call.correlation = correlation;
        call.start = clock_.to_ticks(start);
        call.end = clock_.to_ticks(end);
        decoder_.decode_call(gettid(), call, *registered_device().to);
    }

    static Row row_named(const Trace& trace, std::string_view name) {
        for (Row row = 0; row < trace.ranges().size(); ++row) {
            if (trace.range_name(row) == name) return row;
        }
        return kNoRow;
    }

    static const Argument* value(const Trace& trace, Row row, std::string_view key) {
        for (const Argument& argument : trace.range_arguments(row)) {
            if (trace.string(argument.key) == key) return &argument;
        }
        return nullptr;
    }

    Cupti cupti_{};
    CuptiClock clock_;
    ActivityDecoder decoder_;
    Session session_;
};

TEST_F(Decoding, AKernelIsOnItsQueueUnderTheCallThatLaunchedIt) {
    std::uint64_t start = 0, end = 0;
    {
        MAREY_RANGE("step");
        start = now();
        end = start + 10;
        while (now() < end + 10) {
        }
    }
    decode_call(kRuntimeCalls, 211, 5, start, end);
    decode(kernel("_Z5emptyi", 5, start + 1, end + 1));
    const Trace trace = session_.stop();
    const Row row = row_named(trace, "empty(int)");
    ASSERT_NE(row, kNoRow);
    const TrackInfo& track = trace.tracks()[trace.track_of(row)];
    EXPECT_EQ(track.kind, TrackKind::Device);
    EXPECT_EQ(track.stream, 7);
    EXPECT_EQ(trace.string(trace.sites()[trace.ranges().site[row]].raw_name), "_Z5emptyi");
    EXPECT_EQ(value(trace, row, "registers per thread")->integer, 32);
    EXPECT_EQ(value(trace, row, "shared memory")->integer, 128);
    const ListItems grid = value(trace, row, "grid")->list;
    EXPECT_EQ(trace.list_items()[grid.first].integer, 12);
    ASSERT_EQ(trace.links().size(), 1u);
    EXPECT_EQ(trace.links()[0].to, row);
    EXPECT_EQ(trace.range_name(trace.links()[0].from), "cudaLaunchKernel");
    EXPECT_EQ(value(trace, trace.links()[0].from, "cbid")->integer, 211);
    EXPECT_EQ(trace.range_name(trace.ranges().parent[trace.links()[0].from]), "step");
}

TEST_F(Decoding, AKernelsNameMayMoveToAnotherKernel) {
    char name[] = "first";
    const std::uint64_t start = now();
    decode(kernel(name, 1, start, start + 10));
    std::memcpy(name, "other", 5);
    decode(kernel(name, 2, start + 20, start + 30));
    const Trace trace = session_.stop();
    EXPECT_NE(row_named(trace, "first"), kNoRow);
    EXPECT_NE(row_named(trace, "other"), kNoRow);
}

TEST_F(Decoding, CopiesAndSetsHaveTheirBytes) {
    CopyRecord copy{};
    copy.kind = kActivityMemcpy;
    copy.copy_kind = 1;
    copy.source_kind = 1;
    copy.target_kind = 3;
    copy.bytes = 4000;
    copy.start = now();
    copy.end = copy.start + 2000;
    decode(copy);
    SetRecord set{};
    set.kind = kActivityMemset;
    set.memory_kind = 3;
    set.bytes = 64;
    set.start = now();
    set.end = set.start + 10;
    decode(set);
    const Trace trace = session_.stop();
    const Row row = row_named(trace, "Memcpy HtoD (Pageable -> Device)");
    ASSERT_NE(row, kNoRow);
    EXPECT_EQ(value(trace, row, "bytes")->integer, 4000);
    EXPECT_NEAR(value(trace, row, "memory bandwidth (GB/s)")->real, 2.0, 0.3);
    ASSERT_NE(row_named(trace, "Memset (Device)"), kNoRow);
    EXPECT_EQ(trace.string(trace.sites()[trace.ranges().site[row]].category), "gpu_memcpy");
}

TEST_F(Decoding, WaitsAreOnASeparateTrackAndOverheadHasItsName) {
    decode(stream_wait(0));
    OverheadRecord overhead{};
    overhead.kind = kActivityOverhead;
    overhead.overhead_kind = 5 << 16;
    overhead.start = now();
    overhead.end = overhead.start + 10;
    decode(overhead);
    const Trace trace = session_.stop();
    const Row row = row_named(trace, "Stream Sync");
    ASSERT_NE(row, kNoRow);
    EXPECT_EQ(trace.tracks()[trace.track_of(row)].kind, TrackKind::Async);
    EXPECT_NE(row_named(trace, "Lazy Function Loading"), kNoRow);
}

TEST_F(Decoding, LeavesOutTheOverheadOfMareysThreadAndOfCuptis) {
    OverheadRecord overhead{};
    overhead.kind = kActivityOverhead;
    overhead.object_kind = 2;
    overhead.start = now();
    overhead.end = overhead.start + 10;
    constexpr std::uint32_t kOurs = 7, kCuptis = 8, kPrograms = 9;
    decoder_.leave_out_thread(kOurs);
    const auto decode_one = [&](std::uint32_t thread, std::uint32_t kind) {
        overhead.object[1] = thread;
        overhead.overhead_kind = kind << 16;
        decode(overhead);
    };
    decode_one(kOurs, 5);
    decode_one(kCuptis, 1);
    decode_one(kCuptis, 7);
    decode_one(kPrograms, 1);  // as the end of a context does
    decode_one(kPrograms, 4);
    const Trace trace = session_.stop();
    for (const char* const name : {"Lazy Function Loading", "Activity Buffer Request"})
        EXPECT_EQ(row_named(trace, name), kNoRow) << name;
    for (const char* const name : {"Buffer Flush", "Runtime Triggered Module Loading"})
        EXPECT_NE(row_named(trace, name), kNoRow) << name;
}

TEST_F(Decoding, WaitsAreOnTheDeviceOfTheirContext) {
    for (const std::uint32_t device : {1u, 0u}) {
        KernelRecord work = kernel("work", 1 + device, now(), now() + 10);
        work.device = device;
        work.context = 5 + device;
        decode(work);
    }
    decode(stream_wait(6));
    const Trace trace = session_.stop();
    const Row row = row_named(trace, "Stream Sync");
    ASSERT_NE(row, kNoRow);
    EXPECT_EQ(trace.tracks()[trace.track_of(row)].device.index, 1);
}

TEST_F(Decoding, AWaitForAnEventNamesTheStreamThatRecordedItLastBefore) {
    EventRecord event{};
    event.kind = kActivityEvent;
    event.context = 1;
    event.event = 5;
    for (const std::uint32_t stream : {20u, 21u, 22u}) {
        event.correlation = stream - 10;
        event.stream = stream;
        decode(event);
    }
    WaitRecord wait = stream_wait(1);
    wait.type = 2;
    wait.event = 5;
    wait.correlation = 11;  // before the last one
    decode(wait);
    wait.event = 4;  // recorded before the session
    wait.start = wait.end = wait.end + 10;
    decode(wait);
    const Trace trace = session_.stop();
    std::vector<Row> rows;
    for (Row row = 0; row < trace.ranges().size(); ++row) {
        if (trace.range_name(row) == "Stream Wait Event") rows.push_back(row);
    }
    ASSERT_EQ(rows.size(), 2u);
    ASSERT_NE(value(trace, rows[0], "wait_on_stream"), nullptr);
    EXPECT_EQ(value(trace, rows[0], "wait_on_stream")->integer, 21);
    EXPECT_EQ(value(trace, rows[0], "wait_on_cuda_event_record_corr_id")->integer, 11);
    EXPECT_EQ(value(trace, rows[1], "wait_on_cuda_event_id")->integer, 4);
    EXPECT_EQ(value(trace, rows[1], "wait_on_stream"), nullptr);
}

TEST_F(Decoding, WaitsForTheProbeAreLeftOut) {
    decode(kernel(ActivityDecoder::kProbeName, 4, now(), now() + 10));
    decode(stream_wait(1));
    EXPECT_EQ(row_named(session_.stop(), "Stream Sync"), kNoRow);
}

TEST_F(Decoding, DeviceAllocationsAreReportedAndHostAllocationsAreNot) {
    MemoryRecord memory = allocation(0x1000, 256);
    decode(memory);
    memory.operation = 2;
    memory.bytes = 0;  // a release need not contain the size
    memory.time = now();
    decode(memory);
    memory.operation = 1;
    memory.memory_kind = 2;
    decode(memory);
    const Trace trace = session_.stop();
    ASSERT_EQ(trace.memory().size(), 2u);
    EXPECT_EQ(trace.memory().bytes[0], 256);
    EXPECT_EQ(trace.memory().bytes[1], -256);
    EXPECT_EQ(trace.memory().total_allocated[1], 0);
    EXPECT_EQ(trace.memory().device[0].type, DeviceType::Cuda);
}

TEST_F(Decoding, MemoryTotalsAreResetWhenAllocationsAreForgotten) {
    decode(allocation(0x1000, 256));
    decoder_.forget_allocations();
    decode(allocation(0x2000, 16));
    const Trace trace = session_.stop();
    ASSERT_EQ(trace.memory().size(), 2u);
    EXPECT_EQ(trace.memory().total_allocated[1], 16);
}

TEST_F(Decoding, ProbeKernelsAndUnknownRecordsAreLeftOut) {
    const std::uint64_t start = now();
    decode(kernel(ActivityDecoder::kProbeName, 1, start, start + 10));
    const ActivityRecord unknown{9999};
    decoder_.decode(unknown, *registered_device().to);
    const Trace trace = session_.stop();
    EXPECT_EQ(trace.ranges().size(), 0u);
    const auto runs = decoder_.take_probe_runs();
    ASSERT_EQ(runs.size(), 1u);
    EXPECT_EQ(runs[0].start_ns, start);
}

TEST(CuptiClocks, ConvertTicksBackWithinANanosecond) {
    for (const std::uint64_t rate :
         {1'000'000'000ull, 2'100'000'000ull, 24'000'000ull, 1'000'000ull, 3'999'999'999ull}) {
        const CuptiClock clock(rate);
        for (const std::uint64_t ticks : {0ull, 1ull, 12345ull, 1ull << 40, (1ull << 52) + 77}) {
            const std::uint64_t back = clock.to_ticks(clock.to_ns(ticks));
            const std::uint64_t off = back > ticks ? back - ticks : ticks - back;
            EXPECT_LE(off, rate / 1'000'000'000 + 1) << rate << " " << ticks;
        }
    }
}

TEST_F(Decoding, MigratedPagesHaveTheirBytesAndFaultsHaveNone) {
    UnifiedMemoryRecord moved{};
    moved.kind = kActivityUnifiedMemory;
    moved.counter_kind = 1;  // to the device
    moved.value = 65536;
    moved.address = 0x7000;
    moved.source = 9;  // the host's number, not a device
    moved.target = 1;
    moved.start = now();
    moved.end = moved.start + 100;
    decode(moved);
    moved.counter_kind = 2;  // and back
    std::swap(moved.source, moved.target);
    decode(moved);
    moved.counter_kind = 4;
    moved.target = 1;
    moved.value = 3;
    decode(moved);
    const Trace trace = session_.stop();
    for (const char* name : {"Memcpy HtoD (unified memory)", "Memcpy DtoH (unified memory)"}) {
        const Row row = row_named(trace, name);
        ASSERT_NE(row, kNoRow) << name;
        EXPECT_EQ(trace.tracks()[trace.track_of(row)].device.index, 1) << name;
        EXPECT_EQ(value(trace, row, "bytes")->integer, 65536);
        EXPECT_EQ(value(trace, row, "address")->integer, 0x7000);
    }
    const Row fault = row_named(trace, "Page fault of the GPU (unified memory)");
    ASSERT_NE(fault, kNoRow);
    EXPECT_EQ(value(trace, fault, "bytes"), nullptr);
    EXPECT_EQ(value(trace, fault, "value")->integer, 3);
}

TEST_F(Decoding, WorkThatHadNotEndedIsCountedAndNotWritten) {
    const std::uint64_t start = now();
    decode(kernel("done", 1, start, start + 10));
    decode(kernel("waiting", 2, 0, 0));
    decode(kernel("running", 3, start, 0));
    CopyRecord copy{};
    copy.kind = kActivityMemcpy;
    decode(copy);
    PeerCopyRecord peer{};
    peer.kind = kActivityMemcpyPeer;
    decode(peer);
    SetRecord set{};
    set.kind = kActivityMemset;
    decode(set);
    decode(kernel(ActivityDecoder::kProbeName, 4, 0, 0));  // the probe
    EXPECT_EQ(decoder_.take_unfinished(), 5u);
    EXPECT_EQ(decoder_.take_unfinished(), 0u);
    EXPECT_TRUE(decoder_.take_probe_runs().empty());
    const Trace trace = session_.stop();
    EXPECT_EQ(trace.ranges().size(), 1u);
}
}  // namespace
}  // namespace marey::cuda
