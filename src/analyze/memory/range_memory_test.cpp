// range_memory_test.cpp: the range to which an allocation report belongs.
#include "analyze/memory/range_memory.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include <marey/averages.h>

#include "analyze/trace_fixture.h"
#include "trace/trace_assembler.h"

namespace marey {
namespace {

constexpr Device kCpu{DeviceType::Cpu, -1};
constexpr Device kCuda{DeviceType::Cuda, 0};

/// Traces with explicit reports: at (time, bytes) on the thread added last.
class MemoryWriter {
  public:
    MemoryWriter& thread() {
        thread_ = assembler_.add_thread({});
        lane_ = assembler_.add_lane({.thread = thread_});
        return *this;
    }
    MemoryWriter& range(std::int64_t start, std::int64_t end, bool is_async = false) {
        if (is_async && !async_lane_)
            async_lane_ = assembler_.add_lane({.thread = thread_, .kind = TrackKind::Async});
        const std::string name = std::to_string(start) + "-" + std::to_string(end);
        assembler_.add_range(is_async ? *async_lane_ : lane_, start, end - start,
                             assembler_.site({.name = assembler_.string(name)}));
        return *this;
    }
    MemoryWriter& report(std::int64_t time, std::int64_t bytes, Device device = kCpu, bool refused = false) {
        assembler_.add_memory(thread_,
                              {.time_ns = time, .bytes = bytes, .device = device, .out_of_memory = refused});
        return *this;
    }
    Trace trace() { return assembler_.finish(); }

  private:
    TraceAssembler assembler_;
    Row thread_ = 0;
    std::uint32_t lane_ = 0;
    std::optional<std::uint32_t> async_lane_;
};

/// The names of the owners, one per report.
std::vector<std::string> owners(const Trace& trace) {
    std::vector<std::string> names;
    for (const Row owner : range_memory(trace).owner)
        names.emplace_back(owner == kNoRow ? "none" : trace.range_name(owner));
    return names;
}
using Names = std::vector<std::string>;

// Q13
TEST(RangeMemory, ByTimeAReportBelongsToTheOpenRangesOfAllThreadsAsInPyTorch) {
    const Trace trace = MemoryWriter()
                            .thread()
                            .range(0, 100)
                            .range(10, 50)
                            .report(15, 8)
                            .report(99, 1, kCpu, true)
                            .report(300, 7)
                            .thread()
                            .range(15, 60)
                            .range(400, 500, true)
                            .report(55, 100)
                            .report(450, 1)
                            .trace();
    const RangeMemory memory = range_memory_by_time(trace);
    std::string selves, totals;
    const auto text = [&](const RangeBytes& row) {
        return std::string(trace.range_name(row.range)) + " " + std::to_string(row.cpu_bytes) + ", ";
    };
    for (const RangeBytes& row : memory.self) selves += text(row);
    for (const RangeBytes& row : total_range_memory(trace, memory.self)) totals += text(row);
    EXPECT_EQ(selves, "0-100 100, 10-50 8, 15-60 108, ");
    EXPECT_EQ(totals, "0-100 108, 10-50 8, 15-60 108, ");
    std::string owned;  // ordered by thread, then time
    for (const Row owner : memory.owner) owned += owner == kNoRow ? '-' : 'x';
    EXPECT_EQ(owned, "xx-x-");

    const auto cpu_memory = [&](bool any_thread) {
        std::string lines;
        for (const AverageRow& row : key_averages(trace, {.memory_of_any_thread = any_thread}).rows)
            lines += row.name + " " + std::to_string(row.cpu_memory_bytes) + ", ";
        return lines;
    };
    EXPECT_NE(cpu_memory(true).find("0-100 108, "), std::string::npos) << cpu_memory(true);
    EXPECT_NE(cpu_memory(false).find("0-100 8, "), std::string::npos) << cpu_memory(false);
}

// Q13
TEST(RangeMemory, AReportBelongsToTheInnermostRangeOfItsOwnThread) {
    const Trace trace = MemoryWriter()
                            .thread()
                            .range(0, 100)
                            .range(10, 50)
                            .range(20, 30)
                            .report(5, 1)
                            .report(15, 1)
                            .report(25, 1)
                            .report(40, 1)
                            .report(60, 1)
                            .report(200, 1)
                            .thread()
                            .report(25, 1)
                            .trace();
    EXPECT_EQ(owners(trace), (Names{"0-100", "10-50", "20-30", "10-50", "0-100", "none", "none"}));
}

TEST(RangeMemory, ARangeIsOpenFromItsStartUntilBeforeItsEnd) {
    const Trace trace =
        MemoryWriter().thread().range(10, 20).report(9, 1).report(10, 1).report(19, 1).report(20, 1).trace();
    EXPECT_EQ(owners(trace), (Names{"none", "10-20", "10-20", "none"}));
}

TEST(RangeMemory, ARangeWithoutLengthIsOpenAtItsStart) {
    const Trace trace =
        MemoryWriter().thread().range(0, 20).range(10, 10).report(9, 1).report(10, 1).report(11, 1).trace();
    EXPECT_EQ(owners(trace), (Names{"0-20", "10-10", "0-20"}));
}

TEST(RangeMemory, OfTwoAdjacentRangesTheLaterOneOwns) {
    const Trace trace = MemoryWriter().thread().range(0, 10).range(10, 20).report(10, 1).trace();
    EXPECT_EQ(owners(trace), (Names{"10-20"}));
}

TEST(RangeMemory, AsyncRangesOwnNothing) {
    const Trace trace =
        MemoryWriter().thread().range(0, 5).range(0, 100, true).report(3, 1).report(50, 1).trace();
    EXPECT_EQ(owners(trace), (Names{"0-5", "none"}));
}

TEST(RangeMemory, OverlappingRangesOwnReportsAfterTheirStart) {
    const Trace trace =
        MemoryWriter().thread().range(0, 20).range(10, 30).report(5, 1).report(15, 1).report(25, 1).trace();
    ASSERT_EQ(trace.tracks().size(), 2u);
    EXPECT_EQ(trace.tracks()[1].kind, TrackKind::Overlap);
    EXPECT_EQ(owners(trace), (Names{"0-20", "10-30", "10-30"}));
}

TEST(RangeMemory, SumsSeparateCpuAndDeviceAndExcludeFailedAllocations) {
    const Trace trace = MemoryWriter()
                            .thread()
                            .range(0, 100)
                            .range(10, 50)
                            .report(1, 1000)
                            .report(11, 7)
                            .report(12, 64, kCuda)
                            .report(13, 4096, kCuda, true)
                            .report(60, -400)
                            .report(61, -64, {DeviceType::Meta, 3})
                            .report(200, 5)
                            .trace();
    const RangeMemory memory = range_memory(trace);
    EXPECT_EQ(memory.owner.size(), 7u);
    EXPECT_EQ(memory.owner[3], 1u);
    EXPECT_EQ(memory.self, (std::vector<RangeBytes>{{0, 600, -64}, {1, 7, 64}}));
    EXPECT_EQ(total_range_memory(trace, memory.self), (std::vector<RangeBytes>{{0, 607, 0}, {1, 7, 64}}));
}

TEST(RangeMemory, TotalsReachRangesThatOwnNothing) {
    const Trace trace =
        MemoryWriter().thread().range(0, 100).range(10, 50).range(20, 30).report(25, 8).trace();
    EXPECT_EQ(total_range_memory(trace, range_memory(trace).self),
              (std::vector<RangeBytes>{{0, 8, 0}, {1, 8, 0}, {2, 8, 0}}));
}

TEST(RangeMemory, SumsThatOverflowWrapAround) {
    constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
    const Trace trace = MemoryWriter().thread().range(0, 10).report(1, kMax).report(2, kMax).trace();
    EXPECT_EQ(range_memory(trace).self, (std::vector<RangeBytes>{{0, -2, 0}}));
}

TEST(RangeMemory, ATraceWithoutReportsHasNone) {
    EXPECT_TRUE(range_memory(Trace()).owner.empty());
    EXPECT_TRUE(range_memory(MemoryWriter().thread().range(0, 5).trace()).self.empty());
    EXPECT_EQ(owners(MemoryWriter().thread().report(3, 1).trace()), (Names{"none"}));
}

TEST(RangeMemory, ReportsThatAreNotInOrderAreStillFound) {
    TraceFixture fixture;
    fixture.thread("t", {{"a", 0, 10}, {"b", 10, 10}});
    for (const std::int64_t time : {15, 5, 16, 4}) {
        fixture.data().memory_time_ns.push_back(time);
        fixture.data().memory_thread.push_back(0);
        fixture.data().memory_bytes.push_back(1);
        fixture.data().memory_device.push_back({});
        fixture.data().memory_out_of_memory.push_back(0);
    }
    EXPECT_EQ(owners(fixture.trace()), (Names{"b", "a", "b", "a"}));
}

/// The rule as documented: of all open ranges the one that started last; of equal ones the largest row.
Row owner_by_search(const Trace& trace, Row thread, std::int64_t time) {
    const RangeColumns ranges = trace.ranges();
    Row owner = kNoRow;
    for (const TrackInfo& track : trace.tracks()) {
        if (track.thread != thread || track.kind == TrackKind::Async) continue;
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            const std::int64_t start = ranges.start_ns[row], end = start + ranges.duration_ns[row];
            const bool open = start == time || (start < time && time < end);
            if (open && (owner == kNoRow || start >= ranges.start_ns[owner])) owner = row;
        }
    }
    return owner;
}

TEST(RangeMemory, AgreesWithASearchOfAllRanges) {
    std::mt19937 random(7);
    auto below = [&](int limit) {
        return static_cast<std::int64_t>(random() % static_cast<unsigned>(limit));
    };
    for (int round = 0; round < 200; ++round) {
        MemoryWriter writer;
        for (int thread = 0; thread < 2; ++thread) {
            writer.thread();
            for (int i = 0; i < 30; ++i) {
                const std::int64_t start = below(60);
                writer.range(start, start + below(round % 2 == 0 ? 6 : 40));
            }
            for (int i = 0; i < 40; ++i)
                writer.report(below(100), below(9) - 4, below(2) == 0 ? kCpu : kCuda);
        }
        const Trace trace = writer.trace();
        const MemoryColumns reports = trace.memory();
        const RangeMemory memory = range_memory(trace);
        std::map<Row, RangeBytes> self, total;
        for (std::size_t i = 0; i < reports.size(); ++i) {
            const Row owner = owner_by_search(trace, reports.thread[i], reports.time_ns[i]);
            ASSERT_EQ(memory.owner[i], owner) << "round " << round << ", report " << i;
            auto add = [&](RangeBytes& to, Row row) {
                to.range = row;
                (reports.device[i] == kCpu ? to.cpu_bytes : to.device_bytes) += reports.bytes[i];
            };
            if (owner != kNoRow) add(self[owner], owner);
            for (Row row = owner; row != kNoRow; row = trace.ranges().parent[row]) add(total[row], row);
        }
        auto rows = [](const std::map<Row, RangeBytes>& of) {
            std::vector<RangeBytes> all;
            all.reserve(of.size());
            for (const auto& [row, bytes] : of) all.push_back(bytes);
            return all;
        };
        EXPECT_EQ(memory.self, rows(self));
        EXPECT_EQ(total_range_memory(trace, memory.self), rows(total));
    }
}

}  // namespace
}  // namespace marey
