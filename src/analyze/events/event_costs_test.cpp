// event_costs_test.cpp: the ranges to which the recording cost is attributed.
#include "analyze/events/event_costs.h"

#include <gtest/gtest.h>

#include <memory>

#include <marey/analyze.h>
#include <marey/averages.h>

#include "analyze/trace_fixture.h"
#include "trace/random_trace_fixture.h"

namespace marey {
namespace {

using Costs = std::vector<double>;

struct RecordingTime {
    bool known = false;
    Costs self_ns;   ///< per range; empty if unknown
    Costs total_ns;  ///< likewise
};

RecordingTime recording_time(const Trace& trace) {
    RecordingTime time;
    for (const AverageRow& row : list_ranges(trace, {.merge_repeated = false, .nesting = true}).rows) {
        if (!row.overhead_ns) continue;
        time.known = true;
        time.self_ns.resize(trace.ranges().size());
        time.total_ns.resize(trace.ranges().size());
        time.self_ns[row.first_range] = *row.self_overhead_ns;
        time.total_ns[row.first_range] = *row.overhead_ns;
    }
    return time;
}

void add_report(TraceFixture& fixture, std::int64_t time) {
    TraceData& data = fixture.data();
    data.memory_time_ns.push_back(time);
    data.memory_thread.push_back(static_cast<Row>(data.threads.size() - 1));
    data.memory_address.push_back(1);
    data.memory_bytes.push_back(1);
    data.memory_total_allocated.push_back(0);
    data.memory_total_reserved.push_back(0);
    data.memory_device.push_back({});
    data.memory_out_of_memory.push_back(0);
}

TEST(EventCosts, AChildCostsItsParentAndARootNothing) {
    TraceFixture fixture;
    fixture.thread("t", {{"root", 0, 100, {{"a", 10, 50, {{"b", 20, 10}}}, {"c", 70, 10}}}});
    fixture.value("n", {});  // of c
    fixture.data().costs = {{"range", 10}, {"range_with_values", 40}};
    const RecordingTime time = recording_time(fixture.trace());
    ASSERT_TRUE(time.known);
    EXPECT_EQ(time.self_ns, (Costs{50, 10, 0, 0}));
    EXPECT_EQ(time.total_ns, (Costs{60, 10, 0, 0}));
}

TEST(EventCosts, PointsCostTheInnermostOpenRangeOfTheirThread) {
    TraceFixture fixture;
    fixture.thread("other", {{"x", 0, 100}});
    fixture.thread("t", {{"root", 0, 100, {{"a", 10, 50}}}});
    fixture.instant("i", 5).instant("i", 20).counter("c", 21, 1).counter("c", 500, 1);
    add_report(fixture, 30);
    fixture.data().costs = {
        {"range", 1}, {"instant", 10}, {"counter", 100}, {"allocation_report", 1000}, {"unheard of", 7}};
    const RecordingTime time = recording_time(fixture.trace());
    EXPECT_EQ(time.self_ns, (Costs{0, 11, 1110}));
    EXPECT_EQ(time.total_ns, (Costs{0, 1121, 1110}));
}

TEST(EventCosts, AnAsyncRangeCostsWhatWasOpenWhenItBegan) {
    TraceFixture fixture;
    fixture.thread("t", {{"a", 0, 10}, {"b", 20, 10}}).async("t (async)", {{"wait", 25, 500}});
    fixture.data().costs = {{"range", 3}};
    EXPECT_EQ(recording_time(fixture.trace()).self_ns, (Costs{0, 3, 0}));
}

TEST(EventCosts, DeviceWorkCostsNothing) {
    TraceFixture fixture;
    fixture.thread("gpu", {{"kernel", 0, 100, {{"part", 10, 5}}}}, 0);
    fixture.data().tracks[0].kind = TrackKind::Device;
    fixture.data().tracks[0].device = {DeviceType::Cuda, 0};
    fixture.data().costs = {{"range", 3}};
    EXPECT_FALSE(recording_time(fixture.trace()).known);
}

TEST(EventCosts, AReportWithoutAMeasuredCostHasThatOfACounter) {
    TraceFixture fixture;
    fixture.thread("t", {{"a", 0, 10}});
    add_report(fixture, 5);
    fixture.data().costs = {{"range", 1}, {"counter", 8}};
    const Trace trace = fixture.trace();
    EXPECT_EQ(recording_time(trace).self_ns, (Costs{8}));
    EXPECT_EQ(thread_totals(trace)[0].reports, 1u);
    EXPECT_DOUBLE_EQ(estimate_overhead(trace).total_ns, 9);
}

TEST(EventCosts, APythonCallCostsTheTimeBetweenCalls) {
    const auto overhead = [](std::int64_t gap, Scope scope) {
        TraceFixture fixture;
        fixture.site("call", scope, "app.py");
        std::vector<RangeSpec> calls;
        for (int i = 0; i < 100; ++i) calls.push_back({"call", 100 + i * (20 + gap), 20});
        fixture.thread("t", {{"root", 0, 100'000, calls}});
        fixture.data().costs = {{"range", 10}};
        return estimate_overhead(fixture.trace()).total_ns;
    };
    EXPECT_DOUBLE_EQ(overhead(50, Scope::PythonFunction), 10 + 100 * 50);
    EXPECT_DOUBLE_EQ(overhead(50, Scope::CFunction), 10 + 100 * 50);
    EXPECT_DOUBLE_EQ(overhead(50, Scope::User), 101 * 10);
    EXPECT_DOUBLE_EQ(overhead(3, Scope::PythonFunction), 101 * 10) << "never less than a range";
    EXPECT_DOUBLE_EQ(overhead(900, Scope::PythonFunction), 10 + 100 * 160)
        << "the program's own work is not a cost";
}

TEST(EventCosts, EachKindOfCallCostsTheTimeBetweenCallsOfItsKind) {
    TraceFixture fixture;
    fixture.site("call", Scope::PythonFunction, "app.py");
    fixture.site("generator", Scope::PythonFunction, "app.py");
    fixture.site("len", Scope::CFunction, "");
    std::vector<RangeSpec> calls;
    std::int64_t now = 0;
    const auto add = [&](const char* name, std::int64_t gap) {
        for (int i = 0; i < 100; ++i, now += 20 + gap) calls.push_back({name, now, 20});
        now += 1000;
    };
    add("call", 50);
    add("generator", 90);
    add("len", 30);
    calls.push_back({"generator", now, 20});
    fixture.thread("t", calls);
    fixture.data().costs = {{"range", 10}};
    for (Row row = 100; row < 200; ++row) fixture.data().range_details.push_back({row, -1, 0, 0, 7, 0});
    EXPECT_DOUBLE_EQ(estimate_overhead(fixture.trace()).total_ns, 100 * 50 + 100 * 90 + 100 * 30 + 50);
}

TEST(EventCosts, APythonCallAndAResumeCostWhatTheProcessMeasured) {
    TraceFixture fixture;
    fixture.site("call", Scope::PythonFunction, "app.py");
    fixture.site("generator", Scope::PythonFunction, "app.py");
    fixture.site("len", Scope::CFunction, "");
    std::vector<RangeSpec> calls;
    for (int i = 0; i < 100; ++i) {
        calls.push_back({"call", i * 1000, 20});
        calls.push_back({"generator", i * 1000 + 100, 20});
        calls.push_back({"len", i * 1000 + 200, 20});
        calls.push_back({"len", i * 1000 + 250, 20});
    }
    fixture.thread("t", calls);
    for (Row row = 1; row < 400; row += 4)
        fixture.data().range_details.push_back({row, -1, 0, 0, 7, row == 1 ? kFirstPart : 0u});
    fixture.data().costs = {{"range", 10}, {"python_call", 70}, {"python_resume", 130}};
    EXPECT_DOUBLE_EQ(estimate_overhead(fixture.trace()).total_ns, 100 * 70 + 100 * 130 + 200 * 30);
}

TEST(EventCosts, AKindOfCallThatIsTooRareCostsAsMuchAsTheCheapestOther) {
    TraceFixture fixture;
    fixture.site("call", Scope::PythonFunction, "app.py");
    fixture.site("len", Scope::CFunction, "");
    std::vector<RangeSpec> calls{{"len", 0, 5}, {"len", 300, 5}};
    for (int i = 0; i < 100; ++i) calls.push_back({"call", 1000 + i * 70, 20});
    fixture.thread("t", calls);
    fixture.data().costs = {{"range", 10}};
    EXPECT_DOUBLE_EQ(estimate_overhead(fixture.trace()).total_ns, 102 * 50);
}

TEST(EventCosts, ATotalIsTheSelfPartPlusTheTotalsInside) {
    for (unsigned seed = 1; seed <= 5; ++seed) {
        auto data = std::make_shared<TraceData>(testing::random_training_trace(seed).data());
        data->costs = {{"range", 3}};
        const Trace trace(data);
        const RecordingTime time = recording_time(trace);
        const std::span<const Row> parent = trace.ranges().parent;
        Costs expected = time.self_ns;
        double spent = 0;
        for (std::size_t row = parent.size(); row-- > 0;) {
            if (parent[row] != kNoRow) expected[parent[row]] += expected[row];
            spent += time.self_ns[row];
        }
        EXPECT_EQ(time.total_ns, expected) << seed;
        EXPECT_GT(spent, 0);
    }
}

TEST(EventCosts, AreUnknownWithoutMeasurements) {
    const RecordingTime time = recording_time(TraceFixture().thread("t", {{"a", 0, 1}}).trace());
    EXPECT_FALSE(time.known);
    EXPECT_TRUE(time.self_ns.empty());
}

}  // namespace
}  // namespace marey
