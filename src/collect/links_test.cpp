// links_test.cpp: matching backward ranges with forward ranges.
#include "collect/links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "collect/log_fixture.h"
#include "collect/trace_builder.h"
#include "collect/trace_outline_fixture.h"

namespace marey {
namespace {

using namespace detail;
using testing::find_fault;
using testing::LogWriter;

Trace build_links(const LogWriter& log) {
    Trace trace = build_trace(log.raw());
    EXPECT_EQ(find_fault(trace), "");
    return trace;
}

/// `a>b c>d`: from and to of every link, in order.
std::string links(const Trace& trace) {
    std::string text;
    for (const LinkInfo& link : trace.links()) {
        EXPECT_EQ(link.kind, LinkKind::ForwardBackward);
        text += (text.empty() ? "" : " ") + std::string(trace.range_name(link.from)) + ">" +
                std::string(trace.range_name(link.to));
    }
    return text;
}

/// A closed range with facts.
void put(LogWriter& log, std::uint32_t thread, const std::string& name, std::uint64_t start,
         std::uint64_t end, std::int64_t sequence, std::uint64_t forward_thread = 0, std::uint32_t depth = 0,
         Scope scope = Scope::Function) {
    log.thread(thread).long_range(name, start, end, depth, 0,
                                  log.values().facts(sequence, forward_thread).bytes(), scope);
}

// C31
TEST(Links, ABackwardRangeIsLinkedToTheForwardRangeOfItsThreadAndNumber) {
    LogWriter log;
    put(log, 1, "forward", 10, 20, 5);
    put(log, 1, "other", 20, 30, 6);
    put(log, 2, "elsewhere", 10, 20, 5);
    put(log, 3, "backward", 40, 50, 5, 1);
    EXPECT_EQ(links(build_links(log)), "forward>backward");
}

TEST(Links, NumbersInTheirRecordsLinkRangesToo) {
    LogWriter log;
    log.thread(1).sequenced_range("forward", 10, 20, 0, 5).sequenced_range("other", 20, 30, 0, 6);
    log.thread(3).sequenced_range("backward", 40, 50, 0, 5, 1);
    EXPECT_EQ(links(build_links(log)), "forward>backward");
}

// C31
TEST(Links, OfForwardRangesWithOneNumberTheLastToStartIsLinked) {
    LogWriter log;
    put(log, 1, "inner", 12, 18, 5, 0, 1);
    put(log, 1, "outer", 10, 20, 5);
    put(log, 1, "backward", 40, 50, 5, 1);
    EXPECT_EQ(links(build_links(log)), "inner>backward");
}

// C31
TEST(Links, ForwardRangesThatStartTogetherLinkTheInnerOne) {
    LogWriter log;
    put(log, 1, "inner", 10, 20, 5, 0, 1);
    put(log, 1, "outer", 10, 20, 5);
    put(log, 1, "backward", 40, 50, 5, 1);
    EXPECT_EQ(links(build_links(log)), "inner>backward");
}

// C31
TEST(Links, AForwardRangeIsLinkedOnce) {
    LogWriter log;
    put(log, 1, "forward", 10, 20, 5);
    put(log, 2, "first", 30, 40, 5, 1);
    put(log, 2, "second", 40, 50, 5, 1);
    EXPECT_EQ(links(build_links(log)), "forward>first");
}

// C31
TEST(Links, RangesAreTakenInOrderOfTheirEnds) {
    LogWriter log;
    put(log, 1, "one", 10, 20, 5);
    put(log, 2, "back one", 30, 40, 5, 1);
    put(log, 1, "two", 50, 60, 5);
    put(log, 2, "back two", 70, 80, 5, 1);
    put(log, 2, "back three", 80, 90, 5, 1);
    EXPECT_EQ(links(build_links(log)), "one>back one two>back two");
}

// C31
TEST(Links, ABackwardRangeThatEndedBeforeItsForwardRangeIsNotLinked) {
    LogWriter log;
    put(log, 2, "backward", 5, 9, 5, 1);
    put(log, 1, "forward", 10, 20, 5);
    EXPECT_EQ(links(build_links(log)), "");
}

// C31
TEST(Links, NumbersThatAgreeInTheirLowBitsOnlyAreNotTheSame) {
    LogWriter log;
    put(log, 1, "forward", 10, 20, 5);
    put(log, 2, "backward", 30, 40, 5 + (1ll << 48), 1);
    put(log, 1, "far", 50, 60, 9 + (1ll << 60));
    put(log, 2, "back far", 70, 80, 9 + (1ll << 60), 1);
    EXPECT_EQ(links(build_links(log)), "far>back far");
}

TEST(Links, RangesWithoutANumberAreNotLinked) {
    LogWriter log;
    put(log, 1, "forward", 10, 20, -1);
    put(log, 2, "backward", 30, 40, -1, 1);
    const Trace trace = build_links(log);
    EXPECT_EQ(links(trace), "");
    EXPECT_EQ(trace.range_details().size(), 1u);
}

// C31
TEST(Links, AsyncAndUnfinishedRangesAreLinkedToo) {
    LogWriter log;
    log.start(1, 1, {.option_bits = 0});
    log.thread(1).async_begin(9, "async", 10, 0, log.values().facts(5).bytes());
    log.thread(2).async_end(9, 20, 0);
    log.thread(2).open("open", 30, 0, log.values().facts(5, 1).bytes());
    log.thread(3).range("last", 40, 50, 0);
    EXPECT_EQ(links(build_links(log)), "async>open");
}

TEST(Links, AreSortedByTheirForwardRange) {
    LogWriter log;
    for (int i = 0; i < 50; ++i) put(log, 1, "f", 10 + i, 10 + i, i);
    for (int i = 50; i-- != 0;) put(log, 2, "b", 200 - i, 200 - i, i, 1);
    const Trace trace = build_links(log);  // find_fault checks the order
    ASSERT_EQ(trace.links().size(), 50u);
    for (const LinkInfo& link : trace.links()) {
        EXPECT_EQ(trace.range_detail(link.from)->sequence, trace.range_detail(link.to)->sequence);
    }
}

// C23 R58
TEST(Links, AnEvaluationInheritsTheNumberOfItsBackwardRangeButNotTheLink) {
    LogWriter log;
    put(log, 1, "forward", 10, 20, 5);
    put(log, 2, "MulBackward0", 40, 50, 5, 1, 1, Scope::BackwardFunction);
    log.thread(2).range("autograd::engine::evaluate_function: MulBackward0", 40, 50, 0, Scope::Function);
    const Trace trace = build_links(log);
    EXPECT_EQ(links(trace), "forward>MulBackward0");
    ASSERT_EQ(trace.range_details().size(), 3u);
    const Row row = trace.range_details()[1].range;
    EXPECT_EQ(trace.range_name(row), "autograd::engine::evaluate_function: MulBackward0");
    EXPECT_EQ(trace.range_details()[1].sequence, 5);
    EXPECT_EQ(trace.range_details()[1].forward_thread, 1u);
}

// C23
TEST(Links, AnEvaluationKeepsItsOwnIdAndTakesOnlyFromItsFirstChild) {
    const std::string name = "autograd::engine::evaluate_function: X";
    LogWriter log;
    put(log, 2, "X", 40, 50, 5, 1, 1, Scope::BackwardFunction);
    log.thread(2).long_range(name, 39, 51, 0, 0, log.values().facts(-1, 0, 77).bytes(), Scope::Function);
    log.thread(2).range("first", 60, 62, 1);
    put(log, 2, "X", 63, 65, 6, 1, 1, Scope::BackwardFunction);
    log.thread(2).long_range(name, 59, 66, 0, 0, log.values().facts(-1, 0, 78).bytes(), Scope::Function);
    put(log, 2, "X", 73, 75, 7, 1, 1, Scope::BackwardFunction);
    log.thread(2).range(name, 70, 76, 0, Scope::User);  // not the engine's
    const Trace trace = build_links(log);
    std::map<std::uint64_t, std::int64_t> by_id;
    for (const RangeDetail& detail : trace.range_details()) {
        if (detail.id != 0) by_id[detail.id] = detail.sequence;
    }
    EXPECT_EQ(by_id, (std::map<std::uint64_t, std::int64_t>{{77, 5}, {78, -1}}));
    EXPECT_EQ(trace.range_details().size(), 5u);
}

/// The rule again, in its simplest form.
std::string plain_links(const Trace& trace) {
    const RangeColumns ranges = trace.ranges();
    std::vector<RangeDetail> order(trace.range_details().begin(), trace.range_details().end());
    std::stable_sort(order.begin(), order.end(), [&](const RangeDetail& a, const RangeDetail& b) {
        return ranges.start_ns[a.range] + ranges.duration_ns[a.range] <
               ranges.start_ns[b.range] + ranges.duration_ns[b.range];
    });
    std::map<std::pair<std::uint32_t, std::int64_t>, Row> forward;
    std::map<Row, Row> found;
    for (const RangeDetail& detail : order) {
        if (detail.sequence < 0) continue;
        if (detail.forward_thread == 0) {
            const std::uint32_t thread =
                trace.threads()[trace.tracks()[trace.track_of(detail.range)].thread].id;
            const auto [at, is_new] = forward.try_emplace({thread, detail.sequence}, detail.range);
            if (!is_new && ranges.start_ns[detail.range] > ranges.start_ns[at->second])
                at->second = detail.range;
        } else if (const auto at = forward.find({detail.forward_thread, detail.sequence});
                   at != forward.end()) {
            found[at->second] = detail.range;
            forward.erase(at);
        }
    }
    std::string text;
    for (const auto& [from, to] : found) text += std::to_string(from) + ">" + std::to_string(to) + " ";
    return text;
}

// C31
TEST(Links, RandomProgramsFollowTheRule) {
    std::mt19937 random(9);
    for (int round = 0; round < 200; ++round) {
        LogWriter log;
        std::uint64_t now = 10;
        for (int i = 0; i < 60; ++i) {
            const std::uint64_t start = now;
            now += 2 + random() % 20;
            const std::uint32_t thread = 1 + random() % 3;
            if (random() % 3 == 0) put(log, thread, "in", start + 1, now - 1, random() % 6, 0, 1);
            put(log, thread, "out", start, now, random() % 6, random() % 4);
        }
        const Trace trace = build_links(log);
        std::string text;
        for (const LinkInfo& link : trace.links())
            text += std::to_string(link.from) + ">" + std::to_string(link.to) + " ";
        ASSERT_EQ(text, plain_links(trace)) << round;
    }
}

}  // namespace
}  // namespace marey
