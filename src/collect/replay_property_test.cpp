// replay_property_test.cpp: random programs, replayed, against a plain list of their ranges.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "collect/log_fixture.h"
#include "collect/random_log_fixture.h"
#include "collect/trace_builder.h"
#include "collect/trace_outline_fixture.h"

namespace marey {
namespace {

using testing::ExpectedRange;
using testing::LogWriter;

struct Window {
    std::uint64_t start, stop;
};

/// The reference: filters, re-parents and clips in the simplest way.
void expect_same(const Trace& trace, const std::vector<ExpectedRange>& truth, Window window,
                 const std::string& hidden) {
    const RangeColumns ranges = trace.ranges();
    std::vector<int> kept;
    for (std::size_t i = 0; i < truth.size(); ++i) {
        const ExpectedRange& range = truth[i];
        if (range.start <= window.stop && range.end >= window.start && range.name != hidden)
            kept.push_back(static_cast<int>(i));
    }
    ASSERT_EQ(ranges.size(), kept.size());
    std::map<int, Row> row_of;
    for (std::size_t row = 0; row < kept.size(); ++row) row_of[kept[row]] = static_cast<Row>(row);
    std::vector<std::int64_t> covered(kept.size(), 0);
    for (std::size_t row = 0; row < kept.size(); ++row) {
        const ExpectedRange& range = truth[static_cast<std::size_t>(kept[row])];
        const std::uint64_t end = std::min(range.end, window.stop);
        EXPECT_EQ(trace.range_name(static_cast<Row>(row)), range.name);
        EXPECT_EQ(ranges.start_ns[row], static_cast<std::int64_t>(range.start));
        EXPECT_EQ(ranges.start_ns[row] + ranges.duration_ns[row], static_cast<std::int64_t>(end));
        EXPECT_EQ((ranges.flags[row] & kUnfinished) != 0, range.end > window.stop);
        EXPECT_EQ((ranges.flags[row] & kBeganBefore) != 0, range.start < window.start);
        const RangeDetail* const detail = trace.range_detail(static_cast<Row>(row));
        // For a range that continues after the stop, the log has nothing that counts.
        const bool has_part = range.call != 0 && range.end <= window.stop;
        EXPECT_EQ(detail == nullptr ? 0 : detail->call, has_part ? range.call : 0);
        EXPECT_EQ(detail == nullptr ? 0 : detail->part,
                  has_part ? static_cast<std::uint32_t>(range.part) : 0);
        if (range.sequence >= 0 && range.end <= window.stop) {
            ASSERT_NE(detail, nullptr);
            EXPECT_EQ(detail->sequence, range.sequence);
            EXPECT_EQ(detail->forward_thread, range.forward_thread);
        }
        int parent = range.parent;
        while (parent >= 0 && row_of.count(parent) == 0)
            parent = truth[static_cast<std::size_t>(parent)].parent;
        EXPECT_EQ(ranges.parent[row], parent < 0 ? kNoRow : row_of[parent]);
        const std::int64_t clipped = static_cast<std::int64_t>(end - std::max(range.start, window.start));
        EXPECT_EQ(trace.clipped_duration_ns(static_cast<Row>(row)), clipped);
        if (parent >= 0) covered[row_of[parent]] += clipped;
    }
    for (std::size_t row = 0; row < kept.size(); ++row) {
        EXPECT_EQ(ranges.self_ns[row], trace.clipped_duration_ns(static_cast<Row>(row)) - covered[row]);
    }
}

TEST(ReplayProperty, AKilledProgramIsShownAsItRan) {
    for (std::uint32_t seed = 1; seed <= 150; ++seed) {
        LogWriter log;
        std::mt19937 random(seed);
        const std::vector<ExpectedRange> truth =
            testing::run_program(log, 1, random, 20 + static_cast<int>(random() % 1500));
        std::uint64_t latest = 0;
        for (const ExpectedRange& range : truth) {
            latest = std::max(latest, range.end == ~std::uint64_t{0} ? range.start : range.end);
        }
        const Trace trace = build_trace(log.raw());
        ASSERT_EQ(testing::find_fault(trace), "") << seed;
        expect_same(trace, truth, {truth[0].start, latest}, "");
        ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
    }
}

TEST(ReplayProperty, ASessionInTheMiddleSeesExactlyItsWindow) {
    for (std::uint32_t seed = 1; seed <= 150; ++seed) {
        LogWriter log;
        std::mt19937 random(seed * 77);
        const std::vector<ExpectedRange> truth = testing::run_program(log, 1, random, 500);
        const std::uint64_t last = truth.back().start;
        Window window;
        window.start = 1'000'000 + random() % (last - 1'000'000 + 1);
        window.stop = window.start + random() % (last - window.start + 1);
        log.start(9, window.start).stop(9, window.stop);
        // The stopper reads the open stack a little late, as it would.
        for (const ExpectedRange& range : truth) {
            if (range.start <= window.stop && range.end > window.stop) {
                log.open_at_stop(9, 1, range.name, range.start, range.depth);
            }
        }
        const Trace trace = build_trace(log.raw());
        ASSERT_EQ(testing::find_fault(trace), "") << seed;
        expect_same(trace, truth, window, "");
        ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
    }
}

TEST(ReplayProperty, RangesOfAnotherScopeVanishWithoutATrace) {
    for (std::uint32_t seed = 1; seed <= 60; ++seed) {
        LogWriter log;
        log.site("site3",
                 Scope::Function);  // interns the name before the program does, which uses Scope::User
        std::mt19937 random(seed * 31);
        std::vector<ExpectedRange> truth = testing::run_program(log, 1, random, 400);
        RawLog raw = log.raw();
        // Turn every site called "site3" into a function.
        NameTables names = read_names(raw.names);
        std::size_t at = 0;
        while (at < raw.names.size()) {
            detail::SiteRecord record;
            std::memcpy(&record.head, raw.names.data() + at, sizeof record.head);
            if (record.head.kind == static_cast<std::uint16_t>(detail::NameKind::Site)) {
                std::memcpy(&record, raw.names.data() + at, sizeof record);
                if (names.strings[record.name] == "site3")
                    record.scope = static_cast<std::uint32_t>(Scope::Function);
                std::memcpy(raw.names.data() + at, &record, sizeof record);
            }
            at += record.head.bytes;
        }
        LogWriter marks;
        marks.start(1, 1, {.scopes = ScopeSet{Scope::User}.bits()});
        raw.journal = marks.raw().journal;
        std::uint64_t latest = 0;
        for (const ExpectedRange& range : truth) {
            latest = std::max(latest, range.end == ~std::uint64_t{0} ? range.start : range.end);
        }
        const Trace trace = build_trace(raw);
        ASSERT_EQ(testing::find_fault(trace), "") << seed;
        expect_same(trace, truth, {1, latest}, "site3");
        ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
    }
}

TEST(ReplayProperty, LogsOfAllSortsGiveConsistentTraces) {
    for (std::uint32_t seed = 100; seed < 400; ++seed) {
        const LogWriter log = testing::random_log(seed);
        ASSERT_EQ(testing::find_fault(build_trace(log.raw())), "") << seed;
    }
}

}  // namespace
}  // namespace marey
