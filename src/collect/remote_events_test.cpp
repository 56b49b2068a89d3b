// remote_events_test.cpp: how events from other processes are placed in the tables, and converted back.
#include "collect/remote_events.h"

#include <string>

#include <gtest/gtest.h>
#include <marey/error.h>

#include "collect/capture_reader.h"
#include "collect/log_fixture.h"
#include "collect/packed_capture.h"
#include "collect/trace_builder.h"
#include "collect/trace_outline_fixture.h"
#include "trace/saved_trace.h"
#include "trace/trace_difference_fixture.h"

namespace marey {
namespace {

using testing::find_fault;
using testing::LogWriter;
using testing::outline;
using testing::problem_codes;

/// A message under construction; times are those of the log.
class Sender {
  public:
    Sender() {
        message_.end_ns = 100;
        message_.events.reserve(16);  // references to them stay good
        message_.processes = {{7, 2, "far", "/bin/server"}};
    }
    RemoteEvent& range(std::string_view name, std::int64_t start, std::int64_t end,
                       std::uint64_t thread = 1) {
        RemoteEvent& event = message_.events.emplace_back();
        event.name = message_.add_string(name);
        event.start_ns = start;
        event.end_ns = end;
        event.thread = thread;
        return event;
    }
    RemoteEvent& mark(std::string_view name, std::int64_t time) {
        RemoteEvent& event = range(name, time, time);
        event.kind = RemoteEvent::Kind::Mark;
        return event;
    }
    EventMessage& operator*() { return message_; }
    EventMessage* operator->() { return &message_; }

  private:
    EventMessage message_;
};

detail::RemoteEventsRecord ours() {
    detail::RemoteEventsRecord record{};
    record.head.reserved = kRemoteClockIsOurs;
    record.session = 1;
    record.node = -1;
    return record;
}

LogWriter log_of(EventMessage& message, const detail::RemoteEventsRecord& record = ours(),
                 std::string_view prefix = "") {
    LogWriter log;
    log.born(1, "main", 5).start(1, 10).remote(record, prefix, pack_events(message)).stop(1, 100);
    return log;
}

// The tables are equal, whichever way they were made.
void expect_same_when_stored(const Trace& trace) {
    const Trace again(unpack_trace(pack_trace(trace.data()), "saved"));
    EXPECT_EQ(testing::find_difference(again.data(), trace.data()), "");
    EXPECT_EQ(pack_events(events_of(again)), pack_events(events_of(trace)));
}

TEST(RemoteEvents, NestByTheirTimesAndOverlapsAreAsync) {
    Sender sender;
    sender.range("inner", 30, 40);  // in any order
    sender.range("outer", 20, 50);
    sender.range("crossing", 45, 60);
    sender.range("later", 50, 70);
    sender.range("declared", 21, 22).is_async = true;
    sender.range("twin", 20, 50);
    LogWriter log = log_of(*sender);
    const Trace trace = build_trace(log.raw());
    EXPECT_EQ(find_fault(trace), "");
    EXPECT_EQ(outline(trace),
              "thread 1: outer 20-50 { twin 20-50 { inner 30-40 } } later 50-70\n"
              "thread 1 async: declared 21-22~ crossing 45-60~\n");
    EXPECT_EQ(trace.ranges().self_ns[0], 0);
    EXPECT_EQ(trace.ranges().self_ns[1], 20);
    for (const std::uint16_t flags : trace.ranges().flags) EXPECT_NE(flags & kRemote, 0);
    expect_same_when_stored(trace);
}

TEST(RemoteEvents, AreCutToTheSessionsWindow) {
    Sender sender;
    sender.range("before", 1, 9);
    sender.range("into", 5, 15);
    sender.range("out of", 95, 105);
    sender.range("open", 20, 30).is_unfinished = true;
    sender.range("after", 101, 105);
    sender.mark("early", 9);
    sender.mark("in time", 10);
    LogWriter log = log_of(*sender);
    const Trace trace = build_trace(log.raw());
    EXPECT_EQ(find_fault(trace), "");
    EXPECT_EQ(outline(trace), "thread 1: into 5-15< open 20-30> out of 95-100>\n");
    EXPECT_EQ(trace.instants().size(), 1u);
    EXPECT_EQ(problem_codes(trace), "remote_outside=3");
    expect_same_when_stored(trace);
}

// L2 L3
TEST(RemoteEvents, KeepFieldsThatTheTablesHaveNoColumnFor) {
    Sender sender;
    RemoteEvent& event = sender.range("matmul", 20, 50);
    event.scope = Scope::BackwardFunction;
    event.id = ~std::uint64_t{0};
    event.sequence = 12;
    event.forward_thread = 3;
    event.device = {DeviceType::Cuda, 1};
    event.device_ns = 17;
    event.cpu_memory_bytes = 100;
    event.device_memory_bytes = -200;
    event.shapes = {{2, 3}, {}};
    event.stack = {sender->add_string("f.py"), sender->add_string("g.py")};
    event.values = {{sender->add_string("x"), 1.5}, {sender->add_string("device"), sender->add_string("?")}};
    RemoteEvent& memory = sender.mark("", 25);
    memory.kind = RemoteEvent::Kind::Memory;
    memory.device = {DeviceType::Cuda, 0};
    memory.device_memory_bytes = 64;
    memory.address = 0xabc;
    memory.total_allocated = 640;
    memory.is_refused = true;
    LogWriter log = log_of(*sender);
    const Trace trace = build_trace(log.raw());
    EXPECT_EQ(find_fault(trace), "");
    const RangeDetail* const detail = trace.range_detail(0);
    ASSERT_NE(detail, nullptr);
    EXPECT_EQ(detail->id, ~std::uint64_t{0});
    EXPECT_EQ(detail->sequence, 12);
    EXPECT_EQ(detail->forward_thread, 3u);
    const auto arguments = trace.range_arguments(0);
    ASSERT_EQ(arguments.size(), 9u);
    EXPECT_EQ(arguments[0].role, ArgumentRole::Input);
    ASSERT_EQ(arguments[0].kind, ValueKind::Array);
    EXPECT_EQ(trace.arrays()[arguments[0].array].dimensions, 2u);
    EXPECT_EQ(trace.array_extents()[1], 3);
    EXPECT_EQ(trace.string(arguments[4].string), "cuda:1");
    EXPECT_EQ(arguments[8].list.count, 2u);
    ASSERT_EQ(trace.memory().size(), 1u);
    EXPECT_EQ(trace.memory().bytes[0], 64);
    EXPECT_EQ(trace.memory().address[0], 0xabcu);
    EXPECT_EQ(trace.memory().out_of_memory[0], 1);
    const EventMessage again = events_of(trace);
    EXPECT_EQ(again.events[0].device, event.device);
    EXPECT_EQ(again.events[0].device_ns, 17);
    EXPECT_EQ(again.events[0].device_memory_bytes, -200);
    EXPECT_EQ(again.events[0].shapes, event.shapes);
    EXPECT_EQ(again.events[0].stack.size(), 2u);
    EXPECT_EQ(again.events[0].values.size(), 2u);
    expect_same_when_stored(trace);
}

// L4
TEST(RemoteEvents, ThreadsWithLargeIdsStayApart) {
    Sender sender;
    const std::uint64_t large = std::uint64_t{1} << 40;
    sender.range("a", 20, 30, large + 1);
    sender.range("b", 20, 30, large + 0x1'0000'0001);
    sender.range("c", 20, 30, 5);
    sender->threads = {{0, large + 1, 0, sender->add_string("worker")}};
    LogWriter log = log_of(*sender);
    const Trace trace = build_trace(log.raw());
    EXPECT_EQ(find_fault(trace), "");
    EXPECT_EQ(outline(trace), "thread 5: c 20-30\nworker: a 20-30\nthread 7: b 20-30\n");
    EXPECT_EQ(trace.threads()[2].os_tid, static_cast<std::int64_t>(large + 1));
    expect_same_when_stored(trace);
}

TEST(RemoteEvents, ProcessesAreDistinguishedByPidHostAndNode) {
    Sender one;
    one.range("a", 20, 30);
    Sender two;
    two.range("b", 40, 50);
    Sender three;
    three->processes[0].host = "elsewhere";
    three.range("c", 40, 50);
    LogWriter log;
    detail::RemoteEventsRecord with_node = ours();
    with_node.node = 9;
    log.start(1, 10)
        .remote(ours(), "x ", pack_events(*one))
        .remote(ours(), "x ", pack_events(*two))
        .remote(ours(), "", pack_events(*three))
        .remote(with_node, "", pack_events(*one))
        .stop(1, 100);
    const Trace trace = build_trace(log.raw());
    EXPECT_EQ(find_fault(trace), "");
    EXPECT_EQ(outline(trace), "thread 1: x a 20-30 x b 40-50\nthread 1: c 40-50\nthread 1: a 20-30\n");
    ASSERT_EQ(trace.processes().size(), 4u);
    EXPECT_EQ(trace.processes()[1].node, 2);
    EXPECT_EQ(trace.string(trace.processes()[2].host), "elsewhere");
    EXPECT_EQ(trace.processes()[3].node, 9);
    expect_same_when_stored(trace);
}

TEST(RemoteEvents, AreLinkedToTheInnermostRangeThatHoldsTheCall) {
    Sender sender;
    sender.range("root", 45, 48);
    sender.range("leaf", 46, 47);
    detail::RemoteEventsRecord record = ours();
    record.thread = 1;
    record.call_start = 44;
    record.call_end = 50;
    LogWriter log = log_of(*sender, record);
    log.thread(1).range("short", 43, 46, 2).range("call", 42, 52, 1).range("around", 40, 60, 0);
    const Trace trace = build_trace(log.raw());
    EXPECT_EQ(find_fault(trace), "");
    ASSERT_EQ(trace.links().size(), 1u);
    EXPECT_EQ(trace.range_name(trace.links()[0].from), "call");
    EXPECT_EQ(trace.range_name(trace.links()[0].to), "root");
    EXPECT_EQ(trace.links()[0].kind, LinkKind::Remote);
    expect_same_when_stored(trace);
}

TEST(RemoteEvents, OfAnotherHostLieInTheMiddleOfTheCall) {
    Sender sender;
    sender->start_ns = 1'000'000;
    sender->end_ns = 1'000'020;
    sender.range("root", 1'000'005, 1'000'015);
    detail::RemoteEventsRecord record = ours();
    record.head.reserved = 0;
    record.call_start = 40;
    record.call_end = 80;
    LogWriter called = log_of(*sender, record);
    EXPECT_EQ(outline(build_trace(called.raw())), "thread 1: root 55-65\n");
    EXPECT_EQ(problem_codes(build_trace(called.raw())), "");
    record.call_start = 0;
    LogWriter guessed = log_of(*sender, record);
    EXPECT_EQ(outline(build_trace(guessed.raw())), "thread 1: root 65-75\n");
    EXPECT_EQ(problem_codes(build_trace(guessed.raw())), "remote_clock");
}

TEST(RemoteEvents, ADamagedMessageIsAProblemAndNothingElse) {
    Sender sender;
    sender.range("root", 45, 48);
    std::string bytes = pack_events(*sender);
    bytes[bytes.size() / 2] ^= 1;
    LogWriter log;
    log.start(1, 10).remote(ours(), "", bytes).stop(1, 100);
    const Trace trace = build_trace(log.raw());
    EXPECT_EQ(find_fault(trace), "");
    EXPECT_EQ(trace.ranges().size(), 0u);
    EXPECT_EQ(problem_codes(trace), "remote_damaged");
}

}  // namespace
}  // namespace marey
