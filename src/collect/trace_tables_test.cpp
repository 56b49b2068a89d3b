// trace_tables_test.cpp: instants, counters, allocation reports, values and facts of handwritten logs.
#include <gtest/gtest.h>

#include <marey/error.h>

#include "collect/log_fixture.h"
#include "collect/trace_builder.h"
#include "collect/trace_outline_fixture.h"

namespace marey {
namespace {

using namespace detail;
using testing::build;
using testing::LogWriter;
using testing::outline;
using testing::problem_codes;

TEST(TablesOfATrace, InstantsAndCountersKeepTimeValueAndThread) {
    LogWriter log;
    log.thread(1).instant("tick", 10).counter("load", 20, 0.5).integer_counter("queue", 30, -3);
    log.thread(2).long_instant("flush", 15, log.values().integer("pages", 4).bytes());
    const Trace trace = build(log);
    ASSERT_EQ(trace.instants().size(), 2u);
    EXPECT_EQ(trace.instants().time_ns[1], 15);
    EXPECT_EQ(trace.instants().thread[1], 1u);
    ASSERT_EQ(trace.instant_arguments(1).size(), 1u);
    EXPECT_EQ(trace.string(trace.instant_arguments(1)[0].key), "pages");
    EXPECT_EQ(trace.instant_arguments(0).size(), 0u);
    ASSERT_EQ(trace.counters().size(), 2u);
    EXPECT_EQ(trace.counters().value[0], 0.5);
    EXPECT_EQ(trace.counters().value[1], -3.0);
    EXPECT_EQ(trace.string(trace.sites()[trace.counters().site[1]].name), "queue");
}

TEST(TablesOfATrace, AllocationReportsAreInOrderOfThreadsThenTimes) {
    LogWriter log;
    log.start(1, 10, {.option_bits = kOptionMemory}).stop(1, 50);
    log.thread(2).memory(20, 0x10, 64, 64, 1024, {DeviceType::Cuda, 1}).memory(15, 0x20, 8);
    log.thread(1).memory(9, 0x30, 1).memory(50, 0x40, -64, 0, 1024).memory(51, 0x50, 1);
    log.thread(1).memory(30, ~0ull, 1ll << 40, 7, 8, {DeviceType::Cpu, -1}, true);
    const Trace trace = build(log);
    const MemoryColumns memory = trace.memory();
    ASSERT_EQ(memory.size(), 4u);  // 9 and 51 are outside the window
    EXPECT_EQ(memory.time_ns[0], 30);
    EXPECT_EQ(memory.address[0], ~0ull);
    EXPECT_EQ(memory.bytes[0], 1ll << 40);
    EXPECT_EQ(memory.out_of_memory[0], 1);
    EXPECT_EQ(memory.time_ns[1], 50);
    EXPECT_EQ(memory.bytes[1], -64);
    EXPECT_EQ(memory.out_of_memory[1], 0);
    EXPECT_EQ(memory.time_ns[2], 15);
    EXPECT_EQ(trace.threads()[memory.thread[2]].id, 2u);
    EXPECT_EQ(memory.total_allocated[3], 64);
    EXPECT_EQ(memory.total_reserved[3], 1024);
    EXPECT_EQ(memory.device[3], (Device{DeviceType::Cuda, 1}));
    EXPECT_EQ(problem_codes(trace), "");
}

TEST(TablesOfATrace, ASessionWithoutAllocationsDoesNotGetThem) {
    LogWriter log;
    log.start(1, 0).stop(1, 100);
    log.thread(1).memory(20, 0x10, 64).range("a", 1, 30, 0);
    EXPECT_EQ(build(log).memory().size(), 0u);
}

TEST(TablesOfATrace, AllocationReportsFollowTheContextsOfASession) {
    LogWriter log;
    log.start(1, 10, {.thread = 1, .option_bits = kOptionMemory}).stop(1, 90).context(5, {1});
    log.thread(1).memory(20, 1, 8);
    log.thread(2).memory(30, 2, 8).mark(5, 40).memory(50, 3, 8).mark(0, 60).memory(70, 4, 8);
    const Trace trace = build(log);
    ASSERT_EQ(trace.memory().size(), 2u);
    EXPECT_EQ(trace.memory().address[0], 1u);
    EXPECT_EQ(trace.memory().address[1], 3u);
}

TEST(TablesOfATrace, AnIncompleteAllocationReportIsCounted) {
    LogWriter log;
    log.thread(1).put(RecordKind::Memory, 0, 0, 20, 1, 0, std::vector<std::byte>(31));
    const Trace trace = build(log);
    EXPECT_EQ(trace.memory().size(), 0u);
    EXPECT_EQ(problem_codes(trace), "damaged_memory");
}

TEST(TablesOfATrace, ArgumentsOfEveryKindAreKept) {
    LogWriter log;
    log.start(1, 0);
    auto values = log.values();
    values.integer("n", -7).real("x", 2.5).boolean("ok", true).text("file", "a.txt").none("nothing");
    values.list("sizes", 2, true).integer("", 3).text("", "four").text("cut", "abc", true);
    log.thread(1).range("plain", 5, 6, 1).long_range("a", 1, 10, 0, 0, values.bytes());
    const Trace trace = build(log);
    EXPECT_EQ(trace.range_arguments(1).size(), 0u);
    const auto arguments = trace.range_arguments(0);
    ASSERT_EQ(arguments.size(), 7u);
    EXPECT_EQ(trace.string(arguments[0].key), "n");
    EXPECT_EQ(arguments[0].integer, -7);
    EXPECT_EQ(arguments[1].real, 2.5);
    EXPECT_TRUE(arguments[2].boolean);
    EXPECT_EQ(trace.string(arguments[3].string), "a.txt");
    EXPECT_EQ(arguments[4].kind, ValueKind::None);
    ASSERT_EQ(arguments[5].kind, ValueKind::List);
    EXPECT_TRUE(arguments[5].truncated);
    ASSERT_EQ(arguments[5].list.count, 2u);
    const auto items = trace.list_items().subspan(arguments[5].list.first, 2);
    EXPECT_EQ(items[0].integer, 3);
    EXPECT_EQ(trace.string(items[1].string), "four");
    EXPECT_TRUE(arguments[6].truncated);
}

TEST(TablesOfATrace, ASessionWithoutValuesDoesNotGetThem) {
    LogWriter log;
    log.start(1, 0, {.option_bits = 0}).stop(1, 100);
    log.thread(1).long_range("a", 1, 10, 0, 0, log.values().integer("n", 1).bytes());
    EXPECT_EQ(build(log).range_arguments(0).size(), 0u);
}

TEST(TablesOfATrace, ValuesOfOpenRangesAreKept) {
    LogWriter log;
    log.thread(1).open("a", 5, 0, log.values().integer("n", 1).bytes());
    const Trace trace = build(log);
    ASSERT_EQ(trace.range_arguments(0).size(), 1u);
    EXPECT_EQ(trace.range_arguments(0)[0].integer, 1);
}

TEST(TablesOfATrace, UnknownKindsAreSkippedAndCounted) {
    LogWriter log;
    log.thread(1)
        .compact(0x55, 1, 1, 2, 0)
        .range("a", 1, 10, 0)
        .put(static_cast<RecordKind>(0xf0), 0, 0, 5, 6, 7, std::vector<std::byte>(40))
        .blob(3, std::vector<std::byte>(24))
        .range("b", 11, 12, 0);
    const Trace trace = build(log);
    EXPECT_EQ(outline(trace), "thread 1: a 1-10 b 11-12\n");
    EXPECT_EQ(problem_codes(trace), "unknown_records=2");
}

TEST(TablesOfATrace, ASiteThatIsNotDescribedIsCalledUnknown) {
    LogWriter log;
    log.thread(1).range("a", 1, 10, 0).compact(1, 4711, 20, 30, 0).compact(1, 0, 40, 50, 0);
    const Trace trace = build(log);
    EXPECT_EQ(outline(trace), "thread 1: a 1-10 (unknown) 20-30 (unknown) 40-50\n");
    EXPECT_EQ(problem_codes(trace), "unknown_site");
}

TEST(TablesOfATrace, ThreadsKeepTheirFactsAndLosses) {
    LogWriter log;
    log.start(1, 100)
        .born(1, "old", 5)
        .died(1, 50)
        .born(2, "first", 60, 1234)
        .named(2, "main")
        .born(3, "idle", 120);
    log.born(4, "later", 500).losses(2, 1).losses(2, 5, 6, 7, 8).stop(1, 200, true);
    log.thread(2).range("a", 110, 120, 0);
    const Trace trace = build(log);
    ASSERT_EQ(trace.threads().size(), 2u);
    EXPECT_EQ(trace.string(trace.threads()[0].name), "main");
    EXPECT_EQ(trace.threads()[0].os_tid, 1234);
    EXPECT_EQ(trace.threads()[0].birth_ns, 60);
    EXPECT_EQ(trace.string(trace.threads()[1].name), "idle");
    EXPECT_EQ(problem_codes(trace), "size_limit_reached dropped=5 overwritten=6 resyncs=7 clamped=8");
}

TEST(TablesOfATrace, NotesAndCostsAreKept) {
    LogWriter log;
    log.note("layout", "A library was built against another Marey.", 2).cost(CostKind::Range, 13400);
    const Trace trace = build(log);
    EXPECT_EQ(problem_codes(trace), "layout=2");
    ASSERT_EQ(trace.costs().size(), 1u);
    EXPECT_EQ(trace.costs()[0].kind, "range");
    EXPECT_DOUBLE_EQ(trace.costs()[0].ns, 13.4);
}

TEST(TablesOfATrace, TicksBecomeNanosecondsByTheClockPairs) {
    LogWriter log;
    log.clock_source = ClockSource::Cntvct;
    log.ticks_per_second = 25'000'000;
    log.pair(1'000'000, 40'000'000, 1'000'040'000'000, 10).pair(26'000'000, 1'040'000'000, 0, 20);
    log.thread(1).range("a", 2'000'000, 2'000'025, 0);
    const Trace trace = build(log);
    EXPECT_EQ(outline(trace), "thread 1: a 80000000-80001000\n");
    EXPECT_EQ(trace.clock().source, "cntvct_el0");
    EXPECT_EQ(trace.clock().pairs, 2u);
    EXPECT_EQ(trace.clock().max_error_ns, 400);
    EXPECT_EQ(trace.processes()[0].realtime_offset_ns, 1'000'000'000'000);
}

TEST(TablesOfATrace, TheProcessIsDescribed) {
    LogWriter log;
    const Trace trace = build(log);
    EXPECT_EQ(trace.processes()[0].pid, 42);
    EXPECT_EQ(trace.string(trace.processes()[0].name), "/bin/program");
    EXPECT_EQ(trace.string(trace.processes()[0].host), "host");
    EXPECT_EQ(trace.string(trace.processes()[0].command_line), "program --fast");
}

TEST(TablesOfATrace, ManyThreadsGiveTheSameResultOnOneAndOnSeveralCores) {
    LogWriter log;
    for (std::uint32_t thread = 1; thread <= 200; ++thread) {
        for (std::uint64_t i = 0; i < 50; ++i) {
            log.thread(thread)
                .range("in", i * 100 + 10, i * 100 + 20 + thread % 7, 1)
                .range("out", i * 100, i * 100 + 50, 0);
        }
    }
    const Trace one = build_trace(log.raw(), {.threads = 1});
    const Trace four = build_trace(log.raw(), {.threads = 4});
    EXPECT_EQ(outline(one), outline(four));
    EXPECT_EQ(one.ranges().size(), 20000u);
}

}  // namespace
}  // namespace marey
