// call_parts_test.cpp: parts of calls and tasks, from the log to the trace.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "collect/log_codec.h"
#include "collect/log_fixture.h"
#include "collect/trace_builder.h"
#include "collect/trace_outline_fixture.h"

namespace marey {

using namespace log_codec;

namespace {

using detail::kPartFirst;
using detail::kPartLast;
using testing::LogWriter;

/// "name call/part" of each range, in the order of rows.
std::string parts(const Trace& trace) {
    EXPECT_EQ(testing::find_fault(trace), "");
    std::string text;
    for (Row row = 0; row < trace.ranges().size(); ++row) {
        const RangeDetail* const detail = trace.range_detail(row);
        text += (text.empty() ? "" : " ") + std::string(trace.range_name(row));
        if (detail != nullptr && detail->call != 0)
            text += " " + std::to_string(detail->call) + "/" + std::to_string(detail->part);
    }
    return text;
}

TEST(CallParts, APartBelongsToTheRangeAfterIt) {
    LogWriter log;
    log.thread(1)
        .part(10, 5, kPartFirst)
        .range("a", 10, 20, 1)
        .part(30, 5, kPartLast)
        .range("b", 30, 40, 1)
        .range("c", 50, 60, 1)
        .range("outer", 5, 70, 0);
    EXPECT_EQ(parts(build_trace(log.raw())), "outer a 5/1 b 5/2 c");
}

TEST(CallParts, APartWithoutItsRangeIsIgnored) {
    LogWriter log;
    log.thread(1).part(11, 5, 0).range("a", 10, 20, 0).part(30, 6, 0).dropped(1, 0, 45).range("b", 50, 60, 0);
    log.thread(1).part(70, 7, 0);
    EXPECT_EQ(parts(build_trace(log.raw())), "a b");
}

TEST(CallParts, AFurtherPartIsOneRecordThatRefersToItsCall) {
    LogWriter log;
    log.thread(1)
        .part(10, 5, kPartFirst)
        .range("a", 10, 20, 1)
        .part(12, 6, kPartFirst)
        .range("b", 22, 24, 1)
        .resumed(30, 40, 1, 0, false)
        .range("inner", 52, 54, 2)
        .resumed(50, 60, 1, 0, true)
        .range("outer", 5, 70, 0);
    log.thread(1).next_chunk(80).part(80, 5, 0).range("a", 80, 90, 0).resumed(91, 95, 0, 0, false);
    EXPECT_EQ(parts(build_trace(log.raw())), "outer a 5/1 b a 5/0 a 5/2 inner a 5/0 a 5/0");
}

TEST(CallParts, AFurtherPartWithoutItsCallIsARangeWithoutAName) {
    LogWriter log;
    log.thread(1)
        .range("a", 1, 2, 0)
        .part(3, 5, 0)
        .long_range("b", 3, 4, 0)
        .resumed(5, 6, 0, 0, false)   // the place of a range
        .resumed(7, 8, 0, 1, false)   // a long range follows the part
        .resumed(9, 10, 0, 5, false)  // its own place
        .resumed(11, 12, 0, 0x7fffff, true);
    EXPECT_EQ(parts(build_trace(log.raw())), "a b 5/0 (unknown) (unknown) (unknown) (unknown)");
}

TEST(CallParts, AFurtherPartThatIsStillInItsSlotCountsOnce) {
    LogWriter log;
    log.thread(1).part(10, 5, kPartFirst).range("a", 10, 20, 0).resumed(30, 40, 0, 0, false);
    log.thread(1).open("a", 30, 0);
    EXPECT_EQ(parts(build_trace(log.raw())), "a 5/1 a 5/0");
}

TEST(CallParts, AFurtherPartOfAFilteredRangeIsFilteredToo) {
    LogWriter log;
    log.start(1, 1, {.scopes = ScopeSet{Scope::User}.bits()});
    log.thread(1)
        .part(10, 5, 0)
        .range("hidden", 10, 20, 1, Scope::Function)
        .resumed(22, 25, 1, 0, true)
        .range("shown", 10, 30, 0);
    EXPECT_EQ(parts(build_trace(log.raw())), "shown");
}

TEST(CallParts, LongRangesWithFactsAndAsyncRangesHaveParts) {
    LogWriter log;
    log.thread(1)
        .part(10, 5, kPartFirst)
        .long_range("a", 10, 20, 0, 0, log.values().facts(3, 0, 9).bytes())
        .part(30, 6, kPartLast)
        .long_range("b", 30, 40, 0, detail::kRecordAsync);
    const Trace trace = build_trace(log.raw());
    EXPECT_EQ(parts(trace), "a 5/1 b 6/2");
    EXPECT_EQ(trace.range_detail(0)->sequence, 3);
    EXPECT_EQ(trace.range_detail(0)->id, 9u);
}

TEST(CallParts, PartsThatCrossARangeKeepTheirCall) {
    LogWriter log;
    constexpr std::uint8_t kCrossing = detail::kRecordAsync | detail::kRecordCrosses;
    // A generator that yields while one of its ranges is open, and ends it when it is resumed.
    log.thread(1)
        .part(10, 5, kPartFirst)
        .long_range("generator", 10, 20, 0, kCrossing)
        .range("range", 15, 45, 0)
        .part(40, 5, kPartLast)
        .long_range("generator", 40, 50, 0, kCrossing);
    EXPECT_EQ(parts(build_trace(log.raw())), "generator 5/1 range generator 5/2");
}

TEST(CallParts, APartOfAFilteredRangeIsFilteredToo) {
    LogWriter log;
    log.start(1, 1, {.scopes = ScopeSet{Scope::User}.bits()});
    log.thread(1).part(10, 5, 0).range("hidden", 10, 20, 1, Scope::Function).range("shown", 10, 30, 0);
    EXPECT_EQ(parts(build_trace(log.raw())), "shown");
}

TEST(CallParts, TheJournalHasThePartsOfOpenRanges) {
    LogWriter log;
    log.start(1, 0).stop(1, 100).open_at_stop(1, 1, "open", 10, 0).open_at_stop(1, 1, "plain", 20, 1);
    log.open_part(1, 10, 8, kPartFirst | kPartLast).open_part(2, 20, 9, 0);
    log.thread(1).part(10, 8, kPartFirst | kPartLast).range("open", 10, 200, 0);
    EXPECT_EQ(parts(build_trace(log.raw())), "open 8/1 plain");
}

TEST(CallParts, TasksOfCallsThatAreInTheTraceHaveTheirNames) {
    LogWriter log;
    const auto task = [](std::uint64_t call, const std::string& name) {
        std::vector<std::byte> payload(sizeof call + name.size());
        std::memcpy(payload.data(), &call, sizeof call);
        std::memcpy(payload.data() + sizeof call, name.data(), name.size());
        return payload;
    };
    log.thread(1)
        .blob(detail::kBlobTask, task(5, "fetch"))
        .blob(detail::kBlobTask, task(6, "elsewhere"))
        .blob(detail::kBlobTask, std::vector<std::byte>(3))
        .blob(77, task(5, "another tag"))
        .part(10, 5, kPartFirst)
        .range("a", 10, 20, 0);
    const Trace trace = build_trace(log.raw());
    ASSERT_EQ(trace.task_names().size(), 1u);
    EXPECT_EQ(trace.task_names()[0].call, 5u);
    EXPECT_EQ(trace.string(trace.task_names()[0].name), "fetch");
}

TEST(CallParts, FlagsTellTheFirstPartInTheTraceWithOrWithoutDetails) {
    LogWriter log;
    log.thread(1)
        .part(10, 5, kPartFirst)
        .range("begins", 10, 20, 0)
        .part(30, 6, 0)
        .range("goes on", 30, 40, 0)
        .resumed(50, 60, 0, 0, false)
        .resumed(70, 80, 0, 2, true)
        .range("plain", 90, 100, 0);
    log.thread(2).part(5, 7, 0).range("moves", 5, 15, 0);
    log.thread(3).part(2, 7, 0).range("moves", 2, 4, 0).part(20, 5, 0).range("begins", 20, 30, 0);
    for (const bool has_details : {true, false}) {
        const Trace trace = build_trace(log.raw(), {.part_details = has_details});
        std::string text;
        for (const std::uint16_t flags : trace.ranges().flags)
            text += (flags & kPart) == 0 ? '-' : (flags & kFurtherPart) == 0 ? '1' : '+';
        EXPECT_EQ(text, "11++-+1+");
        EXPECT_EQ(trace.range_details().size(), has_details ? 7u : 0u);
    }
}

TEST(CallParts, PackingKeepsThemBitForBit) {
    LogWriter log;
    auto& thread = log.thread(1);
    for (std::uint64_t i = 0; i < 100; ++i) {
        thread.part(100 * i, 1000 + i / 3, static_cast<int>(i % 4)).range("a", 100 * i, 100 * i + 50, 0);
        thread.resumed(100 * i + 60, 100 * i + 70, i % 2 == 0 ? 0 : 200, 3 * i, i % 3 == 0);
    }
    thread.part(5, 3, 1).part(6, 4, 2).long_range("b", 6, 20'000, 0).part(7, 8, 0);
    const RawLog raw = log.raw();
    LogEncoder encoder;
    for (const LogSpan& span : raw.spans)
        encoder.encode({span.data, span.bytes}, span.thread, span.base_ticks);
    LogDecoder decoder(encoder.columns());
    for (const LogSpan& span : raw.spans) {
        const std::vector<std::byte> records = decoder.decode(span.thread, span.base_ticks, span.bytes);
        ASSERT_EQ(records.size(), span.bytes);
        EXPECT_EQ(std::memcmp(records.data(), span.data, span.bytes), 0);
    }
    EXPECT_LT(encoder.columns()[kRaw].size(), 64u);  // parts with a range after them are not stored in full
}

}  // namespace
}  // namespace marey
