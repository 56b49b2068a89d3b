// trace_builder_test.cpp: the rules of the replay, one by one, on handwritten logs.
#include "collect/trace_builder.h"

#include <gtest/gtest.h>

#include <marey/error.h>

#include "collect/log_fixture.h"
#include "collect/trace_outline_fixture.h"

namespace marey {
namespace {

using namespace detail;
using testing::build;
using testing::LogWriter;
using testing::outline;
using testing::problem_codes;

TEST(TraceBuilder, AnEmptyLogGivesAnEmptyTrace) {
    LogWriter log;
    log.finished = true;
    const Trace trace = build(log);
    EXPECT_EQ(trace.ranges().size(), 0u);
    EXPECT_EQ(trace.processes().size(), 1u);
    EXPECT_EQ(problem_codes(trace), "");
}

TEST(TraceBuilder, RangesNestByRecordedDepthAndOrder) {
    LogWriter log;
    log.thread(1).range("b", 12, 20, 1).range("c", 22, 30, 1).range("a", 10, 50, 0).range("d", 60, 70, 0);
    const Trace trace = build(log);
    EXPECT_EQ(outline(trace), "thread 1: a 10-50 { b 12-20 c 22-30 } d 60-70\n");
    EXPECT_EQ(trace.ranges().self_ns[0], 40 - 8 - 8);
    EXPECT_EQ(trace.ranges().parent[2], 0u);
}

TEST(TraceBuilder, NestingIsNotInferredFromTimes) {
    LogWriter log;
    // All at one tick of a coarse counter: two siblings, each with a child.
    log.thread(1).range("x", 5, 5, 1).range("a", 5, 5, 0).range("y", 5, 5, 1).range("b", 5, 5, 0);
    EXPECT_EQ(outline(build(log)), "thread 1: a 5-5 { x 5-5 } b 5-5 { y 5-5 }\n");
}

TEST(TraceBuilder, AChildThatExceedsItsParentByAFewTicksIsCutAndCounted) {
    LogWriter log;
    log.thread(1).range("b", 9, 51, 1).range("a", 10, 50, 0);
    const Trace trace = build(log);
    EXPECT_EQ(outline(trace), "thread 1: a 10-50 { b 10-50 }\n");
    EXPECT_EQ(problem_codes(trace), "adjusted");
}

TEST(TraceBuilder, SiblingsThatOverlapByAFewTicksAreSeparated) {
    LogWriter log;
    log.thread(1).range("a", 10, 50, 0).range("b", 48, 60, 0);
    EXPECT_EQ(outline(build(log)), "thread 1: a 10-48 b 48-60\n");
}

TEST(TraceBuilder, ARangeWhoseTimesContradictItsNestingBecomesAsync) {
    LogWriter log;
    log.thread(1).range("b", 10, 900'000, 1).range("a", 500'000, 600'000, 0);
    const Trace trace = build(log);
    EXPECT_EQ(outline(trace), "thread 1: a 500000-600000\nthread 1 async: b 10-900000~\n");
    EXPECT_EQ(problem_codes(trace), "misplaced");
}

TEST(TraceBuilder, ChunksOfAThreadAreReadInOrderOfSequenceWhereverTheyLie) {
    LogWriter log;
    log.thread(1)
        .range("b", 12, 20, 1)
        .next_chunk(15)
        .range("c", 22, 30, 1)
        .next_chunk(40)
        .range("a", 10, 50, 0);
    RawLog raw = log.raw();
    std::swap(raw.spans[0], raw.spans[2]);
    EXPECT_EQ(outline(build_trace(raw)), "thread 1: a 10-50 { b 12-20 c 22-30 }\n");
}

TEST(TraceBuilder, AThreadSwitchGivesTheRestOfAChunkToAnotherThread) {
    LogWriter log;
    log.born(1, "first", 1).born(2, "second", 30);
    log.thread(1)
        .range("a", 10, 20, 0)
        .switch_to(2, 30)
        .range("b", 30, 40, 0)
        .switch_to(3, 50)
        .range("c", 51, 52, 0);
    EXPECT_EQ(outline(build(log)), "first: a 10-20\nsecond: b 30-40\nthread 3: c 51-52\n");
}

TEST(TraceBuilder, DeepAndLongRangesUseTheLongForm) {
    LogWriter log;
    constexpr std::uint64_t kLate = std::uint64_t{1} << 50;
    for (std::uint32_t depth = 3000; depth-- != 0;)
        log.thread(1).range("r", 1 + depth, kLate + 3000 - depth, depth);
    const Trace trace = build(log);
    ASSERT_EQ(trace.ranges().size(), 3000u);
    EXPECT_EQ(trace.ranges().depth[2999], 2999u);
    EXPECT_EQ(trace.ranges().start_ns[2999], 3000);
}

TEST(TraceBuilder, RangesWithNumbersNestLikeOthersAndKeepThem) {
    LogWriter log;
    log.thread(1)
        .sequenced_range("inner", 20, 30, 1, 7)
        .sequenced_range("outer", 10, 40, 0, 0xffffffff, 3)
        .sequenced_range("late", 45, 60, 0, 8);
    log.thread(1).open("late", 45, 0);  // read before it was taken off the open stack
    log.thread(2).sequenced_range("early", 20'000, 20'010, 1, 9).range("around", 50'000, 60'000, 0);
    const Trace trace = build(log);
    EXPECT_EQ(
        outline(trace),
        "thread 1: outer 10-40 { inner 20-30 } late 45-60\nthread 2: around 50000-60000\nthread 2 async: "
        "early 20000-20010~\n");
    ASSERT_EQ(trace.range_details().size(), 4u);
    EXPECT_EQ(trace.range_detail(0)->sequence, 0xffffffff);
    EXPECT_EQ(trace.range_detail(0)->forward_thread, 3u);
    EXPECT_EQ(trace.range_detail(1)->sequence, 7);
    EXPECT_EQ(trace.range_detail(2)->sequence, 8);
    EXPECT_EQ(trace.range_detail(4)->sequence, 9);  // its times contradict its nesting: it is async
}

TEST(TraceBuilder, LostRecordsSeparateEarlierRangesFromLaterOnes) {
    LogWriter log;
    // Before the gap: x at depth 2, whose parent at depth 1 is among the lost. After it: another range of
    // depth 1.
    log.thread(1).range("x", 12, 14, 2).dropped(3, 1).range("p", 30, 40, 1).range("a", 10, 50, 0);
    const Trace trace = build(log);
    EXPECT_EQ(outline(trace), "thread 1: a 10-50 { x 12-14 p 30-40 }\n");
    EXPECT_EQ(problem_codes(trace), "dropped=3");
    EXPECT_EQ(trace.threads()[0].dropped, 3u);
}

TEST(TraceBuilder, AMissingChunkDoesNotMakeLaterRangesParentsOfEarlierOnes) {
    LogWriter log;
    log.thread(1)
        .range("x", 12'000, 14'000, 2)
        .next_chunk()
        .range("p", 30'000, 40'000, 1)
        .range("a", 10'000, 50'000, 0);
    EXPECT_EQ(outline(build(log)), "thread 1: a 10000-50000 { x 12000-14000 p 30000-40000 }\n");
}

TEST(TraceBuilder, RangesRecordedBeforeRunningCallsWereFoundLieWithinThem) {
    LogWriter log;
    log.thread(1)
        .range("long ago", 20'000, 40'000, 0)
        .range("leaf", 210'000, 220'000, 1)
        .range("early", 200'000, 230'000, 0)
        .range("early", 250'000, 260'000, 0)
        .adopted(300'000, 0, 2)
        .range("met", 310'000, 330'000, 2)
        .range("inner", 110'000, 400'000, 1)
        .range("outer", 100'000, 500'000, 0)
        .range("later", 600'000, 700'000, 0);
    const Trace trace = build(log);
    EXPECT_EQ(
        outline(trace),
        "thread 1: long ago 20000-40000 outer 100000-500000 { inner 110000-400000 { early 200000-230000 { "
        "leaf 210000-220000 } early 250000-260000 met 310000-330000 } } later 600000-700000\n");
    EXPECT_EQ(problem_codes(trace), "");
}

TEST(TraceBuilder, RunningCallsAreFoundAroundTheRangesThatBeganSince) {
    LogWriter log;
    // `step` began when recording did, with `before` in it; then the calls `outer` and `inner` were put under
    // it.
    log.thread(1)
        .range("alone", 111'000, 112'000, 0)
        .range("before", 130'000, 140'000, 1)
        .adopted(300'000, 0, 2)
        .range("met", 310'000, 330'000, 3)
        .range("step", 120'000, 350'000, 2)
        .range("inner", 110'000, 400'000, 1)
        .range("outer", 100'000, 500'000, 0);
    const Trace trace = build(log);
    EXPECT_EQ(
        outline(trace),
        "thread 1: outer 100000-500000 { inner 110000-400000 { alone 111000-112000 step 120000-350000 { "
        "before 130000-140000 met 310000-330000 } } }\n");
    EXPECT_EQ(problem_codes(trace), "");
}

TEST(TraceBuilder, RangesThatEndedOutOfOrderGoToAsyncTracksAndTheirChildrenToTheirParent) {
    LogWriter log;
    // a { b { e } c { d } } where b ends while c is open: c moves from depth 2 to depth 1.
    log.thread(1)
        .range("e", 12, 13, 2)
        .range("d", 22, 24, 3)
        .long_range("b", 11, 30, 1, kRecordAsync)
        .range("f", 31, 32, 2)
        .range("c", 20, 40, 1)
        .range("a", 10, 50, 0);
    EXPECT_EQ(outline(build(log)),
              "thread 1: a 10-50 { e 12-13 c 20-40 { d 22-24 f 31-32 } }\nthread 1 async: b 11-30~\n");
}

constexpr std::uint8_t kCrossing = kRecordAsync | kRecordCrosses;

TEST(TraceBuilder, ACallInWhichARangeBeganThatOutlivedItIsShownUpToThere) {
    LogWriter log;
    // f { enter { call { early range... } late } body }: first `call` returns, then `enter`; each time the
    // range moves up.
    log.thread(1)
        .range("early", 12, 13, 3)
        .long_range("call", 11, 20, 2, kCrossing)
        .range("late", 22, 24, 3)
        .long_range("enter", 10, 30, 1, kCrossing)
        .range("body", 40, 50, 2)
        .range("range", 15, 60, 1)
        .range("f", 5, 100, 0);
    EXPECT_EQ(outline(build(log)),
              "thread 1: f 5-100 { enter 10-15 { call 11-15 { early 12-13 } } range 15-60 { late 22-24 body "
              "40-50 } }\n");
}

TEST(TraceBuilder, ACallThatEndedARangeAroundItIsShownFromThere) {
    LogWriter log;
    // f { range { body exit { before call { ... } after } } }, where `call` ends the range.
    log.thread(1)
        .range("body", 40, 50, 2)
        .range("before", 62, 63, 3)
        .range("range", 15, 65, 1)
        .long_range("call", 64, 70, 2, kCrossing)
        .range("after", 72, 74, 2)
        .long_range("exit", 61, 80, 1, kCrossing)
        .range("f", 5, 100, 0);
    EXPECT_EQ(
        outline(build(log)),
        "thread 1: f 5-100 { range 15-65 { body 40-50 before 62-63 } exit 65-80 { call 65-70 after 72-74 "
        "} }\n");
}

TEST(TraceBuilder, ACallThatEndsOneRangeAndBeginsTheNextIsShownBetweenThem) {
    LogWriter log;
    log.thread(1)
        .range("one", 10, 30, 0)
        .range("between", 32, 34, 1)
        .long_range("next", 20, 50, 0, kCrossing)
        .range("two", 40, 60, 0);
    EXPECT_EQ(outline(build(log)), "thread 1: one 10-30 next 30-40 { between 32-34 } two 40-60\n");
}

TEST(TraceBuilder, ACrossingCallIsShownWholeWhereTheRangeIsNot) {
    LogWriter log;
    log.start(1, 1, {.scopes = ScopeSet{Scope::Function}.bits()});
    log.thread(1)
        .long_range("enter", 10, 30, 0, kCrossing, {}, Scope::Function)
        .range("range", 15, 60, 0, Scope::User);
    EXPECT_EQ(outline(build(log)), "thread 1: enter 10-30\n");
}

TEST(TraceBuilder, ACrossingCallThatIsOpenAtTheStopIsShownFromTheRangesEnd) {
    LogWriter log;
    log.start(1, 1).stop(1, 100).open_at_stop(1, 1, "exit", 20, 0, {}, kRecordCrosses);
    log.thread(1).range("range", 10, 30, 0).range("after", 40, 50, 1);
    EXPECT_EQ(outline(build(log)), "thread 1: range 10-30 exit 30-100> { after 40-50 }\n");
}

TEST(TraceBuilder, RangesClosedByAResyncAreMarked) {
    LogWriter log;
    log.thread(1).long_range("b", 12, 40, 1, kRecordUnfinished).range("a", 10, 40, 0);
    EXPECT_EQ(outline(build(log)), "thread 1: a 10-40 { b 12-40? }\n");
}

TEST(TraceBuilder, NegativeDurationsBecomeZero) {
    LogWriter log;
    log.thread(1).long_range("a", 50, 40, 0);
    EXPECT_EQ(outline(build(log)), "thread 1: a 50-50\n");
}

TEST(TraceBuilder, ASessionShowsTheRangesThatIntersectItsWindow) {
    LogWriter log;
    log.start(7, 100).stop(7, 200);
    log.thread(1)
        .range("before", 10, 99, 0)
        .range("inside", 120, 130, 1)
        .range("across", 90, 150, 0)
        .range("after", 201, 210, 1)
        .range("over", 180, 250, 0);
    const Trace trace = build(log);
    EXPECT_EQ(outline(trace), "thread 1: across 90-150< { inside 120-130 } over 180-200>\n");
    EXPECT_EQ(trace.ranges().self_ns[0], 40);
    EXPECT_EQ(trace.clipped_duration_ns(0), 50);
    EXPECT_TRUE(trace.window().finished);
}

TEST(TraceBuilder, EachOfTwoSessionsShowsItsOwnWindow) {
    LogWriter log;
    log.start(1, 0, {.name = "one"}).start(2, 50, {.name = "two"}).stop(1, 100).stop(2, 150);
    log.thread(1).range("a", 10, 20, 0).range("b", 60, 70, 0).range("c", 120, 130, 0);
    EXPECT_EQ(outline(build(log, 1)), "thread 1: a 10-20 b 60-70\n");
    EXPECT_EQ(outline(build(log, 2)), "thread 1: b 60-70 c 120-130\n");
    EXPECT_EQ(build(log, 2).window().session_name, "two");
    EXPECT_EQ(list_sessions(log.raw()).size(), 2u);
    EXPECT_EQ(list_sessions(log.raw())[0].name, "one");
    EXPECT_THROW(build_trace(log.raw(), {.session = 3}), Error);
}

TEST(TraceBuilder, AKilledProgramShowsItsOpenRangesUntilTheLatestTimeSeen) {
    LogWriter log;
    log.start(1, 5);
    log.thread(1).range("done", 20, 30, 1).open("work", 10, 0);
    log.thread(2).range("other", 15, 44, 0);
    const Trace trace = build(log);
    EXPECT_EQ(outline(trace), "thread 1: work 10-44> { done 20-30 }\nthread 2: other 15-44\n");
    EXPECT_FALSE(trace.window().finished);
    ASSERT_EQ(trace.problems().size(), 1u);
    EXPECT_EQ(trace.problems()[0].code, "crashed");
}

TEST(TraceBuilder, ARangeBothInTheLogAndStillOpenAppearsOnce) {
    LogWriter log;
    log.thread(1).range("a", 10, 20, 1).open("outer", 5, 0).open("a", 10, 1);
    EXPECT_EQ(outline(build(log)), "thread 1: outer 5-20> { a 10-20 }\n");
}

TEST(TraceBuilder, ASnapshotEndsWhenTheLogWasRead) {
    LogWriter log;
    log.start(1, 5);
    log.end_ticks = 60;
    log.thread(1).range("done", 20, 30, 1).open("work", 10, 0);
    const Trace trace = build(log);
    EXPECT_EQ(outline(trace), "thread 1: work 10-60> { done 20-30 }\n");
    EXPECT_EQ(trace.problems().size(), 0u);
}

TEST(TraceBuilder, OtherScopesAreLeftOutAndTheirChildrenMoveUp) {
    for (const bool are_run_time_names : {false, true}) {
        LogWriter log;
        log.are_run_time_names = are_run_time_names;
        log.start(1, 0, {.scopes = ScopeSet{Scope::User}.bits()}).stop(1, 100);
        log.thread(1)
            .range("x", 20, 30, 2)
            .range("python", 15, 40, 1, Scope::PythonFunction)
            .range("a", 10, 50, 0);
        const Trace trace = build(log);
        EXPECT_EQ(outline(trace), "thread 1: a 10-50 { x 20-30 }\n");
        EXPECT_EQ(trace.ranges().self_ns[0], 30);
        EXPECT_EQ(trace.ranges().depth[1], 1u);
    }
}

TEST(TraceBuilder, ASessionOfOneThreadFollowsItsContexts) {
    LogWriter log;
    log.start(1, 10, {.thread = 1}).context(5, {1, 9}).context(6, {9}).stop(1, 1000);
    log.thread(1).mark(5, 10).range("mine", 20, 30, 1).mark(6, 40).range("foreign", 50, 60, 1).mark(5, 70);
    log.thread(1).range("again", 80, 90, 1).range("outer", 5, 500, 0);
    log.thread(2)
        .range("idle", 12, 14, 1)
        .mark(5, 15)
        .range("task", 20, 25, 1)
        .mark(0, 30)
        .range("idle", 32, 34, 1)
        .range("loop", 1, 400, 0);
    log.thread(3).range("other", 20, 40, 0);
    const Trace trace = build(log);
    EXPECT_EQ(outline(trace), "thread 1: outer 5-500< { mine 20-30 again 80-90 }\nthread 2: task 20-25\n");
    EXPECT_EQ(trace.threads().size(), 2u);
}

TEST(TraceBuilder, MarksOfTheSameTickAreTakenInTheOrderOfTheLog) {
    LogWriter log;
    log.start(1, 10, {.thread = 1}).context(5, {1}).stop(1, 1000);
    log.thread(2)
        .range("before", 20, 20, 1)
        .mark(5, 20, 1)  // "around" is open
        .range("task", 20, 20, 1)
        .async_begin(77, "moved task", 20, 1)
        .mark(0, 20, 1)
        .async_begin(78, "moved after", 20, 1)
        .range("after", 20, 20, 1)
        .async_end(77, 30, 1)
        .async_end(78, 30, 1)
        .range("around", 20, 40, 0);
    log.thread(3).mark(5, 50, 0).mark(0, 60, 1).range("ends later", 60, 70, 0).range("next", 80, 90, 0);
    EXPECT_EQ(outline(build(log)),
              "thread 2: task 20-20\nthread 3: ends later 60-70\nthread 2 async: moved task 20-30~\n");
}

TEST(TraceBuilder, OpenRangesBelongToTheContextInWhichTheyBegan) {
    LogWriter log;
    log.start(1, 10, {.thread = 1}).context(5, {1}).stop(1, 1000);
    log.open_at_stop(1, 2, "before", 12, 0).open_at_stop(1, 2, "task", 30, 1);
    log.open_at_stop(1, 3, "foreign", 30, 0);
    log.thread(2).mark(5, 20, 1);
    log.thread(3).mark(0, 20);
    EXPECT_EQ(outline(build(log)), "thread 2: task 30-1000>\n");
}

TEST(TraceBuilder, AMovableRangeThatNestsIsShownAmongTheScopes) {
    LogWriter log;
    log.thread(1)
        .range("before", 11, 12, 1)
        .async_begin(77, "moved", 20, 1)
        .range("inside", 22, 24, 1)
        .async_begin(78, "inner", 26, 1)
        .range("deep", 27, 28, 1)
        .async_end(78, 29, 1)
        .async_end(77, 30, 1)
        .range("after", 32, 34, 1)
        .range("a", 10, 50, 0);
    EXPECT_EQ(outline(build(log)),
              "thread 1: a 10-50 { before 11-12 moved 20-30 { inside 22-24 inner 26-29 { deep 27-28 } } "
              "after 32-34 }\n");
}

TEST(TraceBuilder, AMovableRangeThatOutlivesItsScopeIsAsync) {
    LogWriter log;
    log.thread(1).async_begin(77, "moved", 20, 1).range("a", 10, 30, 0).async_end(77, 40, 0);
    EXPECT_EQ(outline(build(log)), "thread 1: a 10-30\nthread 1 async: moved 20-40~\n");
}

TEST(TraceBuilder, AStepIsShortenedWhereThatLosesLittle) {
    LogWriter log;
    log.thread(1)
        .step_begin(1, "step 0", 995, 0)
        .range("work", 1100, 1400, 1)
        .async_end(1, 2000, 1)  // within a call that began in it
        .step_begin(2, "step 1", 2950, 1)
        .range("rest", 2960, 2990, 1)
        .range("helper", 1000, 3000, 0)
        .range("work", 4100, 4400, 1)
        .async_end(2, 5000, 1)
        .step_begin(3, "step 2", 5050, 1)
        .range("helper", 3010, 5100, 0)
        .async_end(3, 7000, 0);  // after the call that it began in
    EXPECT_EQ(outline(build(log)),
              "thread 1: helper 1000-3000 { step 0 1000-2000 { work 1100-1400 } rest 2960-2990 } "
              "helper 3010-5100 { step 1 3010-5000 { work 4100-4400 } } step 2 5100-7000\n");
}

TEST(TraceBuilder, ACallIsCutWhereThatLosesLessThanCuttingTheStep) {
    LogWriter log;
    log.thread(1)
        .step_begin(1, "step 0", 5, 1)
        .range("callback", 4, 7, 0)
        .range("work", 10, 180, 0)
        .range("inner", 192, 194, 2)
        .async_end(1, 195, 2)  // a callback of the program, which calls step()
        .range("hook", 191, 197, 1)
        .range("callback", 190, 198, 0);
    EXPECT_EQ(outline(build(log)),
              "thread 1: callback 4-7 step 0 7-195 { work 10-180 inner 192-194 } callback 195-198 { hook "
              "195-197 }\n");
}

// K17
TEST(TraceBuilder, AStepThatCrossesLongRangesIsAsyncAndAllKeepTheirTimes) {
    LogWriter log;
    log.thread(1)
        .range("forward", 10, 40, 1)
        .step_begin(1, "step 0", 50, 1)
        .range("backward", 60, 90, 1)
        .range("optimizer step", 0, 100, 0)
        .range("forward", 210, 240, 1)
        .async_end(1, 250, 1)
        .step_begin(2, "step 1", 251, 1)
        .range("backward", 260, 290, 1)
        .range("optimizer step", 200, 300, 0)
        .async_end(2, 400, 0);
    EXPECT_EQ(outline(build(log)),
              "thread 1: optimizer step 0-100 { forward 10-40 backward 60-90 } "
              "optimizer step 200-300 { forward 210-240 backward 260-290 }\n"
              "thread 1 async: step 0 50-250~ step 1 251-400~\n");
}

TEST(TraceBuilder, AStepThatNothingCrossesIsWhole) {
    LogWriter log;
    log.thread(1).step_begin(1, "step", 5, 0).range("a", 10, 30, 0).async_end(1, 40, 0);
    EXPECT_EQ(outline(build(log)), "thread 1: step 5-40 { a 10-30 }\n");
}

TEST(TraceBuilder, WithPyTorchARangeThatNeverEndedEndsWithTheRangeAroundIt) {
    const auto write = [](const char* operation) {
        LogWriter log;
        log.thread(1)
            .range("first", 12, 15, 2)
            .range(operation, 21, 25, 3)
            .long_range("inner", 11, 40, 1, detail::kRecordAsync)
            .range("between", 42, 45, 2)
            .long_range("outer", 10, 50, 0, detail::kRecordAsync)
            .range("in later", 62, 65, 2)
            .range("later", 60, 70, 1)
            .open("never left", 20, 0);
        return outline(build(log));
    };
    EXPECT_EQ(write("aten::add"),
              "thread 1: outer 10-50 { inner 11-40 { first 12-15 never left 20-40? { aten::add 21-25 } } "
              "between 42-45 } later 60-70 { in later 62-65 }\n");
    EXPECT_NE(write("add").find("inner 11-40~"), std::string::npos);
}

TEST(TraceBuilder, AMovableRangeThatEndsElsewhereIsAsyncOnTheThreadItBeganOn) {
    LogWriter log;
    log.born(1, "main", 0).born(2, "worker", 0);
    log.thread(2).range("w", 30, 50, 0).async_end(77, 60, 0);
    log.thread(1).async_begin(77, "request", 20, 0).range("a", 22, 30, 0);
    EXPECT_EQ(outline(build(log)), "main: a 22-30\nworker: w 30-50\nmain async: request 20-60~\n");
}

TEST(TraceBuilder, CrossingMovableRangesDoNotShareATrack) {
    LogWriter log;
    log.thread(1)
        .async_begin(1, "x", 10, 0)
        .async_begin(2, "y", 20, 0)
        .async_end(1, 30, 0)
        .async_end(2, 40, 0);
    log.thread(2).async_begin(3, "p", 10, 0).async_begin(4, "q", 20, 0).async_begin(5, "r", 50, 0);
    log.thread(3).async_end(3, 35, 0).async_end(4, 45, 0).async_end(5, 60, 0);
    EXPECT_EQ(outline(build(log)),
              "thread 1: y 20-40\nthread 1 async: x 10-30~\n"
              "thread 2 async: p 10-35~ r 50-60~\nthread 2 async 2: q 20-45~\n");
}

TEST(TraceBuilder, AMovableRangeWithoutAnEndIsUnfinished) {
    LogWriter log;
    log.thread(1).async_begin(1, "x", 10, 1).range("c", 12, 14, 1).open("a", 5, 0);
    log.thread(2).range("late", 10, 90, 0);
    EXPECT_EQ(outline(build(log)), "thread 1: a 5-90> { x 10-90> { c 12-14 } }\nthread 2: late 10-90\n");
}

TEST(TraceBuilder, AnEndWithoutABeginIsCounted) {
    LogWriter log;
    log.thread(1).async_end(1, 10, 0).range("c", 12, 14, 0).async_end(2, 13, 0);
    EXPECT_EQ(problem_codes(build(log)), "async_without_begin=2" + std::string());
}

TEST(TraceBuilder, AMovableRangeWhoseBeginIsLostIsShownFromItsEnd) {
    LogWriter log;
    log.thread(1).range("c", 12, 14, 0).async_end_of(77, "request", 5, 20, 0);
    const Trace trace = build(log);
    EXPECT_EQ(outline(trace), "thread 1: c 12-14\nthread 1 async: request 5-20<~\n");
    EXPECT_EQ(problem_codes(trace), "");
}

TEST(TraceBuilder, ASessionHasNoLossesFromBeforeOrAfterIt) {
    LogWriter log;
    log.losses(1, 5, 5).start(1, 10).losses(1, 7, 5).stop(1, 20).losses(1, 90, 50);
    log.thread(1).dropped(5, 0, 8).range("a", 12, 14, 0).dropped(80, 0, 25);
    const Trace trace = build(log);
    EXPECT_EQ(trace.threads()[0].dropped, 2u);
    EXPECT_EQ(problem_codes(trace), "dropped=2");
}

TEST(TraceBuilder, ReportsItsProgressAndHandsOutTheOutlineFirst) {
    LogWriter log;
    log.start(1, 5).stop(1, 100);
    log.thread(1).range("b", 12, 20, 1).range("a", 10, 50, 0);
    log.thread(2).range("c", 30, 60, 0);
    int outlines = 0;
    LoadProgress progress;
    progress.on_outline = [&](const Trace& outline) {
        ++outlines;
        EXPECT_EQ(progress.done, 0u);
        EXPECT_EQ(outline.ranges().size(), 0u);
        EXPECT_EQ(outline.processes().size(), 1u);
        EXPECT_EQ(outline.window().start_ns, 5);
        EXPECT_EQ(outline.window().end_ns, 100);
    };
    const Trace trace = build_trace(log.raw(), {.progress = &progress});
    EXPECT_EQ(outlines, 1);
    EXPECT_EQ(trace.ranges().size(), 3u);
    EXPECT_GT(progress.total, 0u);
    EXPECT_EQ(progress.done, progress.total);
}

}  // namespace
}  // namespace marey
