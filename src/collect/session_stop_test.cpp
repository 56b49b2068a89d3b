// session_stop_test.cpp: the ranges that were open when a session stopped, and those that ended just then.
#include <gtest/gtest.h>

#include "collect/log_fixture.h"
#include "collect/trace_builder.h"
#include "collect/trace_outline_fixture.h"

namespace marey {
namespace {

using testing::build;
using testing::LogWriter;
using testing::outline;
using testing::problem_codes;

// A thread reads the end of a range, is interrupted, and frees the range's slot after the session has
// stopped.
TEST(SessionStop, ARangeThatEndedJustBeforeTheStopIsNotOpenToo) {
    LogWriter log;
    log.thread(1)
        .range("before", 5, 8, 0)
        .range("child", 20, 30, 1)
        .range("late", 10, 900'000, 0)
        .range("open", 910'000, 999'000, 0);
    log.start(7, 0).stop(7, 950'000);
    log.open_at_stop(7, 1, "late", 10, 0).open_at_stop(7, 1, "open", 910'000, 0);
    const Trace trace = build(log);
    EXPECT_EQ(problem_codes(trace), "");
    EXPECT_EQ(outline(trace), "thread 1: before 5-8 late 10-900000 { child 20-30 } open 910000-950000>\n");
}

// The record of the range does not fit into the thread's chunk any more, and getting a new one reaches the
// size limit of the session, which stops it. Another session goes on.
TEST(SessionStop, ARangeWhoseRecordIsInTheFirstChunkAfterTheStopIsNotOpenToo) {
    LogWriter log;
    log.start(7, 0).stop(7, 950'000, true).open_at_stop(7, 1, "late", 10, 0);
    log.thread(1)
        .range("child", 20, 30, 1)
        .next_chunk(960'000)
        .range("late", 10, 900'000, 0)
        .range("next", 970'000, 980'000, 0);
    const Trace trace = build(log, 7);
    EXPECT_EQ(problem_codes(trace), "size_limit_reached");
    EXPECT_EQ(outline(trace), "thread 1: late 10-900000 { child 20-30 }\n");
}

TEST(SessionStop, RangesOpenAtStopEndWithTheWindow) {
    LogWriter log;
    log.start(1, 0).stop(1, 100).open_at_stop(1, 1, "outer", 10, 0).open_at_stop(1, 1, "inner", 40, 1);
    log.thread(1).range("done", 50, 60, 2);
    const Trace trace = build(log);
    EXPECT_EQ(outline(trace), "thread 1: outer 10-100> { inner 40-100> { done 50-60 } }\n");
    EXPECT_EQ(trace.ranges().self_ns[1], 50);
}

TEST(SessionStop, ARangeOpenAtStopThatEndedLaterAppearsOnce) {
    LogWriter log;
    log.start(1, 0).stop(1, 100).open_at_stop(1, 1, "outer", 10, 0).open_at_stop(1, 1, "inner", 40, 1);
    log.thread(1)
        .range("done", 50, 60, 2)
        .range("inner", 40, 120, 1)
        .range("outer", 10, 130, 0)
        .range("late", 140, 150, 0);
    EXPECT_EQ(outline(build(log)), "thread 1: outer 10-100> { inner 40-100> { done 50-60 } }\n");
}

TEST(SessionStop, OpenListsOfOtherSessionsDoNotCount) {
    LogWriter log;
    log.start(1, 0)
        .start(2, 5)
        .stop(1, 100)
        .open_at_stop(1, 1, "a", 10, 0)
        .stop(2, 200)
        .open_at_stop(2, 1, "b", 150, 0);
    log.thread(1).range("a", 10, 120, 0);
    EXPECT_EQ(outline(build(log, 1)), "thread 1: a 10-100>\n");
    EXPECT_EQ(outline(build(log, 2)), "thread 1: a 10-120 b 150-200>\n");
}

// The log was copied until 60; the journal, which is copied after it, already has the stop.
TEST(SessionStop, ASessionThatStopsWhileItsCaptureIsReadStillRunsInIt) {
    LogWriter log;
    log.start(1, 5).open_at_stop(1, 1, "next", 90, 0).stop(1, 100, true);
    log.end_ticks = 60;
    log.thread(1).range("done", 20, 30, 1).open("work", 10, 0);
    const Trace trace = build(log);
    EXPECT_EQ(outline(trace), "thread 1: work 10-60> { done 20-30 }\n");
    EXPECT_FALSE(trace.window().size_limit_reached);
    EXPECT_EQ(trace.problems().size(), 0u);
}

}  // namespace
}  // namespace marey
