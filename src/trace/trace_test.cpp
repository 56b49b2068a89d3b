// trace_test.cpp: the accessors of the model.
#include <marey/trace.h>

#include <gtest/gtest.h>

#include "trace/trace_data.h"

namespace marey {
namespace {

TEST(Trace, AnEmptyTraceAnswersEverything) {
    const Trace trace;
    EXPECT_EQ(trace.ranges().size(), 0u);
    EXPECT_EQ(trace.string(0), "");
    EXPECT_EQ(trace.string(99), "");
    EXPECT_EQ(trace.range_name(5), "");
    EXPECT_EQ(trace.track_of(0), kNoRow);
    EXPECT_EQ(trace.clipped_duration_ns(3), 0);
    EXPECT_TRUE(trace.range_arguments(0).empty());
}

TEST(Trace, RowsFindTheirTrackNameArgumentsAndClippedDuration) {
    auto data = std::make_shared<TraceData>();
    data->strings = {"", "work", "n"};
    data->sites = {{1, 0, 0, Scope::User}};
    data->tracks = {{TrackKind::Thread, 0, 0, 0, 2}, {TrackKind::Async, 0, 0, 2, 1}};
    data->range_start_ns = {0, 60, 90};
    data->range_duration_ns = {50, 20, 100};
    data->range_self_ns = {0, 0, 0};
    data->range_site = {0, 0, 7};
    data->window.start_ns = 10;
    data->window.end_ns = 100;
    Argument argument;
    argument.key = 2;
    argument.kind = ValueKind::Int;
    argument.integer = 3;
    data->arguments = {argument};
    data->range_arguments = {{1, 0, 1}};
    const Trace trace(data);
    EXPECT_EQ(trace.track_of(0), 0u);
    EXPECT_EQ(trace.track_of(1), 0u);
    EXPECT_EQ(trace.track_of(2), 1u);
    EXPECT_EQ(trace.track_of(3), kNoRow);
    EXPECT_EQ(trace.range_name(1), "work");
    EXPECT_EQ(trace.range_name(2), "");
    EXPECT_EQ(trace.clipped_duration_ns(0), 40);
    EXPECT_EQ(trace.clipped_duration_ns(2), 10);
    EXPECT_EQ(trace.range_arguments(0).size(), 0u);
    ASSERT_EQ(trace.range_arguments(1).size(), 1u);
    EXPECT_EQ(trace.range_arguments(1)[0].integer, 3);
}

TEST(Trace, EveryScopeHasAName) {
    for (int scope = 0; scope < kScopeCount; ++scope)
        EXPECT_STRNE(scope_name(static_cast<Scope>(scope)), "unknown");
    EXPECT_STREQ(scope_name(static_cast<Scope>(kScopeCount)), "unknown");
}

}  // namespace
}  // namespace marey
