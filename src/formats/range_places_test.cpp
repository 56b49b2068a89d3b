// range_places_test.cpp: steps by time, collectives by their values.
#include "formats/range_places.h"

#include <gtest/gtest.h>

#include "analyze/trace_fixture.h"

namespace marey {
namespace {

Argument text_value(TraceFixture& fixture, const std::string& text) {
    Argument argument;
    argument.kind = ValueKind::String;
    argument.string = fixture.string(text);
    return argument;
}
Argument integer_value(std::int64_t number) {
    Argument argument;
    argument.kind = ValueKind::Int;
    argument.integer = number;
    return argument;
}

TEST(RangePlaces, ARangeBelongsToTheStepOfItsProcessInWhichItBegan) {
    const Trace trace = TraceFixture()
                            .thread("main", {{"before", 0, 5},
                                             {"ProfilerStep#7", 10, 90, {{"load", 20, 30}}},
                                             {"between", 105, 3},
                                             {"ProfilerStep#8", 110, 90}})
                            .thread("worker", {{"early", 2, 50}, {"inside", 60, 100}, {"later", 150, 10}})
                            .trace();
    const RangePlaces places(trace);
    std::vector<std::int64_t> steps;
    for (Row row = 0; row < trace.ranges().size(); ++row) steps.push_back(places.step(row));
    EXPECT_EQ(steps, (std::vector<std::int64_t>{-1, 7, 7, -1, 8, -1, 7, 8}));
}

TEST(RangePlaces, ATraceWithoutStepsHasNone) {
    const Trace trace = TraceFixture().thread("main", {{"load", 0, 5}}).trace();
    EXPECT_EQ(RangePlaces(trace).step(0), -1);
    EXPECT_EQ(RangePlaces(trace).collective(0), nullptr);
}

TEST(RangePlaces, CollectivesAreNumberedByTheirValuesOrInOrderOfTime) {
    TraceFixture fixture;
    const Argument world = text_value(fixture, "world"), tensor = text_value(fixture, "tensor");
    fixture.thread("a", {{"record_param_comms", 100, 5}}).value("Process Group Name", world);
    fixture.thread("b", {{"record_param_comms", 50, 5}}).value("Process Group Name", world);
    fixture.thread("c", {{"record_param_comms", 60, 5}}).value("Process Group Name", tensor);
    fixture.thread("d", {{"record_param_comms", 70, 5}})
        .value("Process Group Name", tensor)
        .value("Seq", integer_value(42));
    fixture.thread("e", {{"barrier", 80, 5}}).value("group", world).value("sequence", integer_value(9));
    fixture.thread("f", {{"select", 90, 5}}).value("group", world);  // without a number it may be anything
    fixture.thread("g", {{"MPI_Barrier", 95, 5}})
        .value("group", integer_value(1234))
        .value("sequence", integer_value(7));
    const Trace trace = fixture.trace();
    const RangePlaces places(trace);
    const auto of = [&](Row row) {
        const Collective* const found = places.collective(row);
        return found == nullptr
                   ? std::string("none")
                   : std::string(places.group_name(found->group)) + " " + std::to_string(found->sequence);
    };
    EXPECT_EQ(of(0), "world 2");  // after the one on thread b and the barrier
    EXPECT_EQ(of(1), "world 0");
    EXPECT_EQ(of(2), "tensor 0");
    EXPECT_EQ(of(3), "tensor 42");
    EXPECT_EQ(of(4), "world 9");
    EXPECT_EQ(of(5), "none");
    EXPECT_EQ(of(6), "1234 7");
}

TEST(RangePlaces, OfALaunchAndItsKernelTheKernelIsTheCollective) {
    TraceFixture fixture;
    const Argument world = text_value(fixture, "world");
    fixture.thread("main", {{"record_param_comms", 0, 5}})
        .value("Process Group Name", world)
        .value("Seq", integer_value(1));
    fixture.async("stream 7", {{"ncclDevKernel", 10, 50}})
        .value("Process Group Name", world)
        .value("Seq", integer_value(1));
    fixture.data().tracks.back().kind = TrackKind::Device;
    const RangePlaces places(fixture.trace());
    EXPECT_EQ(places.collective(0), nullptr);
    ASSERT_NE(places.collective(1), nullptr);
    EXPECT_EQ(places.collective(1)->sequence, 1);
}

}  // namespace
}  // namespace marey
