// device_calls_test.cpp: calls into device libraries, among the ranges of their threads.
#include <gtest/gtest.h>

#include <marey/validate.h>

#include "collect/device_fixture.h"
#include "collect/trace_builder.h"
#include "collect/trace_outline_fixture.h"

namespace marey {
namespace {

using testing::device_session;
using testing::find_fault;
using testing::kDevice;
using testing::kMain;
using testing::LogWriter;
using testing::outline;
using testing::problem_codes;
using testing::put_call;

/// A log with a session from 0 to 1000 (of thread 1, system thread id 100) and the log of a device.
class DeviceCalls : public ::testing::Test {
  protected:
    DeviceCalls() { log.born(kMain, "main", 1, 100).born(kDevice, "cuda", 1, 0); }

    void call(std::string_view name, std::uint64_t start, std::uint64_t end, std::uint32_t os_tid = 100) {
        put_call(log, kDevice, {.name = name, .start = start, .end = end, .os_tid = os_tid});
    }
    Trace build(const LogWriter::SessionParts& parts = device_session(), std::uint64_t start = 1,
                std::uint64_t stop = 1000) {
        log.start(5, start, parts).stop(5, stop);
        const Trace trace = build_trace(log.raw(), {.session = 5});
        EXPECT_EQ(find_fault(trace), "");
        for (const Violation& violation : validate(trace))
            ADD_FAILURE() << violation.rule << violation.example;
        return trace;
    }
    LogWriter log;
};

TEST_F(DeviceCalls, BelongToTheInnermostRangeAroundTheirMiddle) {
    log.thread(kMain).range("inner", 20, 60, 1).range("outer", 10, 100, 0).range("later", 200, 300, 0);
    call("before", 2, 6);
    call("in outer", 12, 16);
    call("in inner", 30, 40);
    call("after inner", 70, 80);
    call("between", 120, 140);
    call("in later", 210, 220);
    call("after", 400, 410);
    EXPECT_EQ(
        outline(build()),
        "main: before 2-6 outer 10-100 { in outer 12-16 inner 20-60 { in inner 30-40 } after inner 70-80 }"
        " between 120-140 later 200-300 { in later 210-220 } after 400-410\n");
}

TEST_F(DeviceCalls, AreCutWhereTheirRangeAndItsNeighboursBeginAndEnd) {
    log.thread(kMain).range("a", 10, 100, 0).range("c", 130, 140, 1).range("b", 110, 200, 0);
    call("early", 4, 30);    // mostly in a
    call("late", 60, 105);   // likewise
    call("to c", 112, 132);  // ends in c, but belongs to b
    call("from c", 138, 160);
    EXPECT_EQ(
        outline(build()),
        "main: a 10-100 { early 10-30 late 60-100 } b 110-200 { to c 112-130 c 130-140 from c 140-160 }\n");
}

TEST_F(DeviceCalls, InsideCallsAreTheirChildren) {
    log.thread(kMain).range("range", 10, 100, 0);
    call("runtime", 20, 60);
    call("driver", 25, 50);
    call("deeper", 30, 40);
    call("second", 52, 58);
    call("next", 60, 70);
    EXPECT_EQ(
        outline(build()),
        "main: range 10-100 { runtime 20-60 { driver 25-50 { deeper 30-40 } second 52-58 } next 60-70 }\n");
}

TEST_F(DeviceCalls, InsideACallThatIsCutStayInside) {
    log.thread(kMain).range("range", 10, 40, 0);
    call("runtime", 20, 50);
    call("driver", 25, 49);
    call("last", 49, 50);
    EXPECT_EQ(outline(build()), "main: range 10-40 { runtime 20-40 { driver 25-40 last 40-40 } }\n");
}

TEST_F(DeviceCalls, ThatOverlapAreMadeToFollowOneAnother) {
    call("outer", 10, 50);
    call("a", 12, 30);
    call("b", 20, 40);
    call("c", 45, 70);
    EXPECT_EQ(outline(build()), "main: outer 10-50 { a 12-30 b 30-40 } c 50-70\n");
}

TEST_F(DeviceCalls, TakeTheirTimeFromTheRangeAroundThem) {
    log.thread(kMain).range("inner", 20, 50, 1).range("outer", 10, 100, 0);
    call("runtime", 60, 80);
    call("driver", 65, 75);
    call("also", 30, 35);
    const Trace trace = build();
    ASSERT_EQ(trace.ranges().size(), 5u);
    const auto self = trace.ranges().self_ns;
    EXPECT_EQ(std::vector<std::int64_t>(self.begin(), self.end()),
              (std::vector<std::int64_t>{90 - 30 - 20, 25, 5, 10, 10}));
}

TEST_F(DeviceCalls, LeaveValuesAndPartsWithTheirRows) {
    const auto values = [&](int n) { return log.values().integer("n", n).bytes(); };
    log.thread(kMain).long_range("a", 10, 20, 1, 0, values(1));
    log.thread(kMain).part(30, 77, detail::kPartFirst).range("b", 30, 40, 1);
    log.thread(kMain).long_range("c", 5, 100, 0, 0, values(3)).long_range("d", 110, 120, 0, 0, values(4));
    put_call(log, kDevice, {.name = "x", .start = 6, .end = 8, .correlation = 21});
    put_call(log, kDevice, {.name = "y", .start = 22, .end = 26, .correlation = 22, .result = 700});
    put_call(log, kDevice, {.name = "z", .start = 104, .end = 108});
    const Trace trace = build();
    EXPECT_EQ(outline(trace), "main: c 5-100 { x 6-8 a 10-20 y 22-26 b 30-40 } z 104-108 d 110-120\n");
    const auto shown = [&](Row row) {
        std::string text;
        for (const Argument& argument : trace.range_arguments(row))
            text += std::string(trace.string(argument.key)) + "=" + std::to_string(argument.integer) + " ";
        return text;
    };
    EXPECT_EQ(shown(0), "n=3 ");
    EXPECT_EQ(shown(1), "correlation=21 ");
    EXPECT_EQ(shown(2), "n=1 ");
    EXPECT_EQ(shown(3), "correlation=22 error=700 ");
    EXPECT_EQ(shown(5), "");
    EXPECT_EQ(shown(6), "n=4 ");
    ASSERT_NE(trace.range_detail(4), nullptr);
    EXPECT_EQ(trace.range_detail(4)->call, 77u);
    EXPECT_EQ(trace.range_details().size(), 1u);
}

TEST_F(DeviceCalls, OfAThreadThatRecordedNothingHaveASeparateTrack) {
    log.thread(kMain).range("range", 10, 100, 0);
    call("mine", 20, 30);
    call("theirs", 20, 30, 555);
    call("again", 40, 50, 555);
    const Trace trace = build();
    EXPECT_EQ(outline(trace), "main: range 10-100 { mine 20-30 }\nthread 10: theirs 20-30 again 40-50\n");
    ASSERT_EQ(trace.threads().size(), 3u);
    EXPECT_EQ(trace.threads()[2].os_tid, 555);
    EXPECT_EQ(trace.threads()[2].id, 10u);
}

TEST_F(DeviceCalls, GoToTheThreadThatHadTheNumberThen) {
    log.born(2, "first", 10, 200).died(2, 100).born(3, "second", 150, 200).died(3, 300);
    log.thread(2).range("a", 20, 90, 0);
    log.thread(3).range("b", 160, 290, 0);
    call("early", 5, 8, 200);
    call("in a", 30, 40, 200);
    call("before it recorded", 120, 130, 200);
    call("in b", 170, 180, 200);
    call("unknown", 400, 410, 200);
    EXPECT_EQ(outline(build()),
              "first: early 5-8 a 20-90 { in a 30-40 }\n"
              "second: before it recorded 120-130 b 160-290 { in b 170-180 }\n"
              "thread 10: unknown 400-410\n");
}

TEST_F(DeviceCalls, OfAnUnknownThreadGetNoNumberThatTheLogUses) {
    log.thread(10).range("undeclared", 20, 30, 0);
    call("call", 22, 24, 555);
    EXPECT_EQ(outline(build()), "thread 10: undeclared 20-30\nthread 11: call 22-24\n");
}

TEST_F(DeviceCalls, OutsideOfTheWindowAreLeftOutAndThoseAcrossItsEdgesAreMarked) {
    call("before", 10, 90);
    call("across the start", 95, 110);
    call("inside", 120, 130);
    call("across the stop", 190, 230);
    call("after", 240, 250);
    const Trace trace = build(device_session(), 100, 200);
    EXPECT_EQ(outline(trace), "main: across the start 95-110< inside 120-130 across the stop 190-200>\n");
    EXPECT_EQ(trace.ranges().self_ns[0], 10);
    EXPECT_EQ(trace.ranges().self_ns[2], 10);
}

TEST_F(DeviceCalls, AcrossTheStartBelongWhereTheirPartInTheWindowDoes) {
    log.thread(kMain).range("range", 98, 150, 0);
    call("across the start", 60, 110);
    const Trace trace = build(device_session(), 100, 200);
    EXPECT_EQ(outline(trace), "main: range 98-150< { across the start 98-110< }\n");
}

TEST_F(DeviceCalls, GoToRangesThatAreOpenAtTheStop) {
    log.thread(kMain).range("done", 20, 30, 1);
    call("call", 40, 50);
    call("waits", 60, 2000);
    log.open_at_stop(5, kMain, "open", 10, 0);
    EXPECT_EQ(outline(build()), "main: open 10-1000> { done 20-30 call 40-50 waits 60-1000> }\n");
}

TEST_F(DeviceCalls, LongerThan32BitsOfTicksAreWhole) {
    put_call(log, kDevice, {.name = "long", .start = 10, .end = 6'000'000'000});
    EXPECT_EQ(outline(build(device_session(), 1, 7'000'000'000)), "main: long 10-6000000000\n");
}

TEST_F(DeviceCalls, AreOnlyInSessionsThatRequestedThem) {
    log.thread(kMain).range("range", 10, 100, 0);
    call("runtime", 20, 30);
    put_call(log, kDevice, {.name = "driver", .start = 22, .end = 28, .is_driver = true});
    put_call(log, kDevice, {.name = "other device", .start = 40, .end = 50, .type = DeviceType::Other});
    put_call(log, kDevice, {.name = "any device", .start = 60, .end = 70, .type = DeviceType::Cpu});
    log.start(6, 1, device_session(kDeviceCalls)).stop(6, 1000);
    log.start(7, 1, device_session(kDeviceDriverCalls)).stop(7, 1000);
    log.start(8, 1, device_session(kDeviceKernels)).stop(8, 1000);
    log.start(9, 1).stop(9, 1000);
    const auto shown = [&](std::uint64_t session) {
        return outline(build_trace(log.raw(), {.session = session}));
    };
    EXPECT_EQ(shown(6), "main: range 10-100 { runtime 20-30 any device 60-70 }\n");
    EXPECT_EQ(shown(7), "main: range 10-100 { driver 22-28 }\n");
    EXPECT_EQ(shown(8), "main: range 10-100\n");
    EXPECT_EQ(shown(9), "main: range 10-100\n");
}

TEST_F(DeviceCalls, OfASessionOfOneThreadAreItsOwnAndThoseWithinItsTasks) {
    log.born(2, "worker", 1, 200).context(4, {5});
    log.thread(kMain).range("main's", 10, 100, 0);
    log.thread(2).mark(4, 30).range("task", 40, 60, 0).mark(0, 70).range("not ours", 80, 90, 0);
    call("a", 20, 30);
    call("b", 110, 120);
    call("c", 45, 50, 200);
    call("c inside", 46, 49, 200);
    call("d", 82, 86, 200);
    call("e", 20, 25, 555);
    LogWriter::SessionParts parts = device_session();
    parts.thread = kMain;
    EXPECT_EQ(
        outline(build(parts)),
        "main: main's 10-100 { a 20-30 } b 110-120\nworker: task 40-60 { c 45-50 { c inside 46-49 } }\n");
}

TEST_F(DeviceCalls, ThatAreIncompleteAreCounted) {
    log.thread(kDevice).put(detail::RecordKind::DeviceCall, detail::kRecordLongCall,
                            log.site("short", Scope::DeviceRuntime), 10, 100ull << 32, 1,
                            std::vector<std::byte>(8));
    call("whole", 20, 30);
    const Trace trace = build();
    EXPECT_EQ(outline(trace), "main: whole 20-30\n");
    EXPECT_EQ(problem_codes(trace), "damaged_device");
}

}  // namespace
}  // namespace marey
