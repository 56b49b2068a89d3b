// trace_join_test.cpp: joining traces that follow one another.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <vector>

#include <marey/error.h>
#include <marey/trace.h>

#include "trace/random_trace_fixture.h"
#include "trace/trace_assembler.h"
#include "trace/trace_data.h"
#include "trace/trace_difference_fixture.h"

namespace marey {
namespace {

// The same later: it does not overlap the earlier one.
Trace moved_by(const Trace& trace, std::int64_t ns) {
    auto data = std::make_shared<TraceData>(trace.data());
    for (std::vector<std::int64_t>* const times :
         {&data->range_start_ns, &data->instant_time_ns, &data->counter_time_ns, &data->memory_time_ns})
        for (std::int64_t& time : *times) time += ns;
    data->window.start_ns += ns;
    data->window.end_ns += ns;
    return Trace(std::move(data));
}

std::int64_t self_time(const Trace& trace) {
    std::int64_t sum = 0;
    for (const std::int64_t ns : trace.ranges().self_ns) sum += ns;
    return sum;
}

std::map<std::string, int> names_of(const Trace& trace) {
    std::map<std::string, int> counts;
    for (Row row = 0; row < trace.ranges().size(); ++row) ++counts[std::string(trace.range_name(row))];
    return counts;
}

TEST(TraceJoin, OneTraceIsItself) {
    const Trace trace = testing::RandomTrace(3).make();
    EXPECT_EQ(testing::find_difference(join_traces(std::array{trace}).data(), trace.data()), "");
    EXPECT_EQ(join_traces({}).ranges().size(), 0U);
}

TEST(TraceJoin, HoldsWhatItsPartsHold) {
    for (unsigned seed = 0; seed < 200; ++seed) {
        const Trace first = testing::RandomTrace(seed).make();
        const std::int64_t span = first.window().end_ns - first.window().start_ns;
        const Trace second = moved_by(first, span + 10);
        const Trace joined = join_traces(std::array{second, first});
        ASSERT_EQ(find_damage(joined.data()), "") << seed;
        EXPECT_EQ(joined.ranges().size(), 2 * first.ranges().size());
        EXPECT_EQ(self_time(joined), 2 * self_time(first)) << seed;
        EXPECT_EQ(joined.threads().size(), first.threads().size());
        EXPECT_EQ(joined.sites().size(), first.sites().size());
        EXPECT_EQ(joined.links().size(), 2 * first.links().size());
        EXPECT_EQ(joined.instants().size(), 2 * first.instants().size());
        EXPECT_EQ(joined.memory().size(), 2 * first.memory().size());
        for (auto& [name, count] : names_of(joined)) EXPECT_EQ(count, 2 * names_of(first)[name]) << name;
        EXPECT_EQ(joined.window().start_ns, first.window().start_ns);
        EXPECT_EQ(joined.window().end_ns, second.window().end_ns);
    }
}

TEST(TraceJoin, KeepsTheValuesOfEveryRange) {
    const Trace first = testing::RandomTrace(11).make();
    const Trace second = moved_by(first, 1'000'000'000);
    const Trace joined = join_traces(std::array{first, second});
    std::size_t values = 0, expected = 0;
    for (Row row = 0; row < first.ranges().size(); ++row) expected += first.range_arguments(row).size();
    for (Row row = 0; row < joined.ranges().size(); ++row) values += joined.range_arguments(row).size();
    EXPECT_GT(expected, 0U);
    EXPECT_EQ(values, 2 * expected);
}

TEST(TraceJoin, TimeBetweenTwoWindowsCountsForNothing) {
    const auto cycle = [](std::int64_t start, std::int64_t end) {
        TraceAssembler assembler;
        assembler.set_window(start, end);
        Lane lane;
        ThreadInfo thread;
        thread.process = assembler.add_process({});
        thread.id = 1;
        lane.thread = assembler.add_thread(thread);
        assembler.add_range(assembler.add_lane(lane), 0, 1000, assembler.site(assembler.named("outer")));
        return assembler.finish();
    };
    const Trace joined = join_traces(std::array{cycle(100, 200), cycle(500, 700)});
    ASSERT_EQ(joined.ranges().size(), 2U);
    EXPECT_EQ(joined.tracks().size(), 1U);
    EXPECT_EQ(joined.ranges().start_ns[0], 100);
    EXPECT_EQ(joined.clipped_duration_ns(0) + joined.clipped_duration_ns(1), 300);
}

TEST(TraceJoin, WindowsThatOverlapAreRejected) {
    const Trace trace = testing::RandomTrace(3).make();
    ASSERT_GT(trace.window().end_ns, trace.window().start_ns);
    EXPECT_THROW(join_traces(std::array{trace, trace}), Error);
}

TEST(TraceMetadata, ALaterFactReplacesAnEarlierOneOfTheSameKey) {
    const Trace trace = Trace().with_metadata("a", "1").with_metadata("b", "[2]").with_metadata("a", "\"x\"");
    ASSERT_EQ(trace.metadata().size(), 2U);
    EXPECT_EQ(trace.metadata()[0].json, "\"x\"");
    EXPECT_THROW(trace.with_metadata("c", "{"), Error);
}

TEST(TraceChanges, ChangeATraceWithoutAnotherUserInPlaceAndOthersInACopy) {
    TraceChanges changes;
    changes.rename = [](Scope, std::string_view name) {
        return name.empty() ? std::string() : "new " + std::string(name);
    };
    changes.first_id = 7;
    const Trace kept = testing::RandomTrace(3).make();
    const std::string before(kept.string(kept.sites()[0].name));
    const Trace changed = Trace::changed(kept, changes);
    EXPECT_EQ(kept.string(kept.sites()[0].name), before);
    EXPECT_EQ(changed.string(changed.sites()[0].name), before.empty() ? "" : "new " + before);
    EXPECT_EQ(changed.window().first_id, 7U);

    Trace only = testing::RandomTrace(3).make();
    const TraceData* const tables = &only.data();
    const Trace same = Trace::changed(std::move(only), changes);
    EXPECT_EQ(&same.data(), tables);
    EXPECT_EQ(same.string(same.sites()[0].name), changed.string(changed.sites()[0].name));
}

}  // namespace
}  // namespace marey
