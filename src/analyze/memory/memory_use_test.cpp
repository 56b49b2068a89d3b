// memory_use_test.cpp: memory held, peak memory, and the ranges that allocated it.
#include <marey/memory_use.h>

#include <gtest/gtest.h>

#include <marey/results.h>

#include "json/strict_json_fixture.h"
#include "trace/trace_assembler.h"

namespace marey {
namespace {

constexpr Device kGpu{DeviceType::Cuda, 0};

class Writer {
  public:
    Writer() {
        ProcessInfo process;
        process.pid = 100;
        assembler_.add_process(process);
        thread();
    }
    Writer& thread(Row process = 0) {
        ThreadInfo info;
        info.process = process;
        thread_ = assembler_.add_thread(info);
        lane_ = assembler_.add_lane({.thread = thread_});
        return *this;
    }
    Writer& process() {
        assembler_.add_process({});
        return thread(1);
    }
    Writer& range(const char* name, std::int64_t start, std::int64_t end) {
        assembler_.add_range(lane_, start, end - start, assembler_.site({.name = assembler_.string(name)}));
        return *this;
    }
    Writer& take(std::int64_t time, std::uint64_t address, std::int64_t bytes) {
        return report({.time_ns = time, .address = address, .bytes = bytes});
    }
    Writer& give(std::int64_t time, std::uint64_t address, std::int64_t bytes) {
        return take(time, address, -bytes);
    }
    Writer& report(const AllocationReport& report) {
        assembler_.add_memory(thread_, report);
        return *this;
    }
    Trace trace() { return assembler_.finish(); }

  private:
    TraceAssembler assembler_;
    Row thread_ = 0;
    std::uint32_t lane_ = 0;
};

/// "path: allocations allocated total freed | at the peak | kept", one line per holder.
std::string lines(const DeviceMemory& memory) {
    std::string text;
    for (const MemoryHolder& holder : memory.holders) {
        for (const std::string& name : holder.path) text += name + "/";
        text += ": " + std::to_string(holder.allocations) + " " + std::to_string(holder.allocated_bytes) +
                " " + std::to_string(holder.total_allocated_bytes) + " " +
                std::to_string(holder.freed_bytes) + " | " + std::to_string(holder.peak_allocations) + " " +
                std::to_string(holder.peak_bytes) + " | " + std::to_string(holder.kept_allocations) + " " +
                std::to_string(holder.kept_bytes) + "\n";
    }
    return text;
}

std::vector<std::int64_t> levels(const MemorySeries& series) {
    std::vector<std::int64_t> all;
    for (const MemoryPoint& point : series.points) all.push_back(point.allocated);
    return all;
}
using Levels = std::vector<std::int64_t>;

Writer training() {
    Writer writer;
    writer.range("step", 0, 100).range("forward", 10, 40).range("backward", 50, 90);
    writer.take(5, 1, 10).take(20, 2, 100).take(30, 3, 50).give(35, 3, 50);
    writer.take(60, 4, 200).give(70, 2, 100).take(200, 5, 1);
    return writer;
}

TEST(MemoryUse, ReportsHoldersAtThePeakAndWhatWasKept) {
    const MemoryUse use = memory_use(training().trace());
    ASSERT_EQ(use.devices.size(), 1u);
    const DeviceMemory& memory = use.devices[0];
    EXPECT_EQ(memory.peak_bytes, 310);
    EXPECT_EQ(memory.peak_time_ns, 60);
    EXPECT_EQ(memory.peak_unknown_bytes, 0);
    EXPECT_EQ(memory.start_bytes, 0);
    EXPECT_EQ(memory.end_bytes, 211);
    EXPECT_EQ(memory.allocations, 5u);
    EXPECT_EQ(memory.allocated_bytes, 361);
    EXPECT_EQ(memory.frees, 2u);
    EXPECT_EQ(memory.freed_bytes, 150);
    EXPECT_EQ(memory.kept_allocations, 3u);
    EXPECT_EQ(memory.kept_bytes, 211);
    EXPECT_EQ(lines(memory),
              "step/backward/: 1 200 200 100 | 1 200 | 1 200\n"
              "step/forward/: 2 150 150 50 | 1 100 | 0 0\n"
              "step/: 1 10 360 0 | 1 10 | 1 10\n"
              ": 1 1 1 0 | 0 0 | 1 1\n");
}

TEST(MemoryUse, ByNameCountsRecursionOnce) {
    Writer writer;
    writer.range("f", 0, 100)
        .range("g", 10, 90)
        .range("f", 20, 80)
        .take(5, 1, 1)
        .take(15, 2, 10)
        .take(30, 3, 100);
    EXPECT_EQ(lines(memory_use(writer.trace(), {.by_name = true}).devices.at(0)),
              "f/: 2 101 111 0 | 2 101 | 2 101\n"
              "g/: 1 10 110 0 | 1 10 | 1 10\n");
}

TEST(MemoryUse, MemoryAllocatedBeforeTheWindowCountsFromTheStart) {
    Writer writer;
    writer.take(10, 1, 5).give(20, 99, 1000).take(30, 2, 7);
    const Trace trace = writer.trace();
    const std::vector<MemorySeries> series = memory_series(trace);
    ASSERT_EQ(series.size(), 1u);
    EXPECT_FALSE(series[0].has_totals);
    EXPECT_EQ(levels(series[0]), (Levels{1005, 5, 12}));
    const DeviceMemory memory = memory_use(trace).devices.at(0);
    EXPECT_EQ(memory.start_bytes, 1000);
    EXPECT_EQ(memory.peak_bytes, 1005);
    EXPECT_EQ(memory.peak_unknown_bytes, 1000);
    EXPECT_EQ(memory.earlier_frees, 1u);
    EXPECT_EQ(memory.earlier_bytes, 1000);
}

TEST(MemoryUse, ThePeakMayBeTheStart) {
    const DeviceMemory memory = memory_use(Writer().give(10, 1, 100).take(20, 2, 5).trace()).devices.at(0);
    EXPECT_EQ(memory.peak_bytes, 100);
    EXPECT_EQ(memory.peak_unknown_bytes, 100);
    EXPECT_EQ(memory.peak_time_ns, 10);
    EXPECT_EQ(memory.holders.at(0).peak_allocations, 0u);
}

TEST(MemoryUse, TheAllocatorsTotalsAreUsedIfReported) {
    Writer writer;
    auto report = [&](std::int64_t time, std::uint64_t address, std::int64_t bytes, std::int64_t allocated,
                      std::int64_t reserved) {
        writer.report({.time_ns = time,
                       .address = address,
                       .bytes = bytes,
                       .total_allocated = allocated,
                       .total_reserved = reserved,
                       .device = kGpu});
    };
    report(10, 1, 64, 1064, 4096);
    report(20, 2, 32, 1096, 8192);
    report(30, 2, -32, 1064, 4096);
    const Trace trace = writer.trace();
    const MemorySeries series = memory_series(trace).at(0);
    EXPECT_TRUE(series.has_totals);
    EXPECT_EQ(series.device, kGpu);
    EXPECT_EQ(levels(series), (Levels{1064, 1096, 1064}));
    EXPECT_EQ(series.points[1].reserved, 8192);
    const DeviceMemory memory = memory_use(trace).devices.at(0);
    EXPECT_EQ(memory.start_bytes, 1000);
    EXPECT_EQ(memory.peak_bytes, 1096);
    EXPECT_EQ(memory.peak_unknown_bytes, 1000);
    EXPECT_EQ(memory.peak_reserved, 8192);
    EXPECT_EQ(memory.earlier_frees, 0u);
}

TEST(MemoryUse, MemoryAllocatedByOneThreadMayBeFreedByAnother) {
    Writer writer;
    writer.range("make", 0, 50).take(10, 1, 100).thread().range("drop", 0, 50).give(20, 1, 100);
    const DeviceMemory memory = memory_use(writer.trace()).devices.at(0);
    EXPECT_EQ(memory.kept_allocations, 0u);
    EXPECT_EQ(memory.earlier_frees, 0u);
    EXPECT_EQ(memory.peak_bytes, 100);
    EXPECT_EQ(lines(memory), "make/: 1 100 100 0 | 1 100 | 0 0\ndrop/: 0 0 0 100 | 0 0 | 0 0\n");
}

TEST(MemoryUse, DevicesAndProcessesAreKeptApart) {
    Writer writer;
    writer.take(1, 1, 10).report({.time_ns = 2, .address = 1, .bytes = 20, .device = kGpu});
    writer.process().take(3, 1, 30);
    const MemoryUse use = memory_use(writer.trace());
    ASSERT_EQ(use.devices.size(), 3u);
    EXPECT_EQ(use.devices[0].peak_bytes, 10);
    EXPECT_EQ(use.devices[1].device, kGpu);
    EXPECT_EQ(use.devices[1].peak_bytes, 20);
    EXPECT_EQ(use.devices[2].process, 1u);
    EXPECT_EQ(use.devices[2].peak_bytes, 30);
}

TEST(MemoryUse, FailedAllocationsReportRequestedAndHeldBytesAndChangeNothing) {
    Writer writer;
    writer.range("grow", 0, 100).take(10, 1, 64);
    writer.report({.time_ns = 20, .bytes = 1 << 20, .total_reserved = 9, .out_of_memory = true});
    const DeviceMemory memory = memory_use(writer.trace()).devices.at(0);
    ASSERT_EQ(memory.refusals.size(), 1u);
    EXPECT_EQ(memory.refusals[0].asked_bytes, 1 << 20);
    EXPECT_EQ(memory.refusals[0].allocated, 64);
    EXPECT_EQ(memory.refusals[0].reserved, 9);
    EXPECT_EQ(memory.refusals[0].path, std::vector<std::string>{"grow"});
    EXPECT_EQ(memory.peak_bytes, 64);
    EXPECT_EQ(memory.allocations, 1u);

    const DeviceMemory only =
        memory_use(Writer().report({.bytes = 5, .out_of_memory = true}).trace()).devices.at(0);
    EXPECT_EQ(only.refusals.size(), 1u);
    EXPECT_EQ(only.peak_bytes, 0);
}

TEST(MemoryUse, AnAddressAllocatedTwiceHadAnUnreportedFree) {
    const DeviceMemory memory = memory_use(Writer().take(1, 7, 10).take(2, 7, 20).trace()).devices.at(0);
    EXPECT_EQ(memory.unseen_frees, 1u);
    EXPECT_EQ(memory.kept_allocations, 1u);
    EXPECT_EQ(memory.kept_bytes, 20);
}

TEST(MemoryUse, SurvivesInvalidReports) {
    constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
    constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
    Writer writer;
    writer.range("r", 0, 10).take(1, 0, 5).take(2, 0, kMin).take(3, 1, kMax).take(4, 1, kMax).take(5, 2, 0);
    writer.take(6, 3, kMin).take(7, 3, kMin).report({.time_ns = 8, .bytes = kMin, .out_of_memory = true});
    const Trace trace = writer.trace();
    const MemoryUse use = memory_use(trace);
    EXPECT_EQ(use.devices.at(0).allocations, 3u);
    EXPECT_EQ(memory_series(trace).at(0).points.size(), 7u);
    EXPECT_TRUE(memory_use(Trace()).devices.empty());
    EXPECT_TRUE(memory_series(Trace()).empty());
}

TEST(MemoryUse, IsWrittenAsStrictJson) {
    Writer writer = training();
    writer.report({.time_ns = 65, .bytes = 999, .out_of_memory = true});
    const Trace trace = writer.trace();
    const std::string json = result_json(memory_result(trace, memory_use(trace)));
    StrictJson::Value value;
    ASSERT_EQ(StrictJson::parse(json, value), "") << json;
    const StrictJson::Value& device = value["memory_devices"].items.at(0);
    const StrictJson::Value& holder = value["memory_holders"].items.at(0);
    EXPECT_EQ(device["pid"].number(), 100);
    EXPECT_EQ(device["peak_bytes"].number(), 310);
    EXPECT_EQ(holder["path"].items.at(1).text, "backward");
    EXPECT_EQ(holder["peak_bytes"].number(), 200);
    EXPECT_EQ(value["memory_refusals"].items.at(0)["asked_bytes"].number(), 999);
}

}  // namespace
}  // namespace marey
