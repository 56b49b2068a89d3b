// remote_events_test.cpp: how traces of other processes are added to the tables.
#include "collect/remote_events.h"

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <marey/error.h>
#include <marey/remote.h>

#include "collect/log_fixture.h"
#include "collect/trace_builder.h"
#include "collect/trace_outline_fixture.h"
#include "trace/random_trace_fixture.h"
#include "trace/saved_trace.h"
#include "trace/saved_trace_repair_fixture.h"
#include "trace/trace_assembler.h"
#include "trace/trace_difference_fixture.h"

namespace marey {
namespace {

using testing::find_fault;
using testing::LogWriter;
using testing::outline;
using testing::problem_codes;

/// A trace under construction; times are those of the log.
class Sender {
  public:
    explicit Sender(std::string_view host = "far") {
        assembler_.set_window(0, 100);
        process.pid = 7;
        process.node = 2;
        process.host = assembler_.string(host);
        process.name = assembler_.string("/bin/server");
        assembler_.add_process(process);
        lane_ = lane(1);
    }
    std::uint32_t lane(std::uint32_t thread, std::int64_t os_tid = 0, TrackKind kind = TrackKind::Thread) {
        ThreadInfo info;
        info.id = thread;
        info.os_tid = os_tid;
        Lane lane;
        lane.thread = assembler_.add_thread(info);
        lane.kind = kind;
        return assembler_.add_lane(lane);
    }
    std::uint32_t site(std::string_view name, Scope scope = Scope::User) {
        SiteInfo info;
        info.name = assembler_.string(name);
        info.scope = scope;
        return assembler_.site(info);
    }
    TraceAssembler::RangeId range(std::string_view name, std::int64_t start, std::int64_t end,
                                  std::uint32_t lane = 0, std::uint16_t flags = 0) {
        return assembler_.add_range(lane, start, end - start, site(name), flags);
    }
    void mark(std::string_view name, std::int64_t time) { assembler_.add_instant(0, time, site(name)); }
    TraceAssembler* operator->() { return &assembler_; }
    std::string message() { return pack_events(assembler_.finish()); }

    ProcessInfo process;

  private:
    TraceAssembler assembler_;
    std::uint32_t lane_ = 0;
};

detail::RemoteEventsRecord ours() {
    detail::RemoteEventsRecord record{};
    record.head.reserved = kRemoteClockIsOurs;
    record.session = 1;
    record.node = -1;
    return record;
}

LogWriter log_of(Sender& sender, const detail::RemoteEventsRecord& record = ours(),
                 std::string_view prefix = "") {
    LogWriter log;
    log.born(1, "main", 5).start(1, 10).remote(record, prefix, sender.message()).stop(1, 100);
    return log;
}

// The tables are equal, whichever way they were made.
void expect_same_when_stored(const Trace& trace) {
    const Trace again(unpack_trace(pack_trace(trace.data()), "saved"));
    EXPECT_EQ(testing::find_difference(again.data(), trace.data()), "");
    EXPECT_EQ(pack_events(again), pack_events(trace));
}

TEST(RemoteEvents, KeepTheirTracksAndAreFlagged) {
    Sender sender;
    sender.range("inner", 30, 40);
    sender.range("outer", 20, 50);
    sender.range("later", 50, 70);
    sender.range("twin", 20, 50);
    sender.range("declared", 21, 22, sender.lane(2, 0, TrackKind::Async));
    LogWriter log = log_of(sender);
    const Trace trace = build_trace(log.raw());
    EXPECT_EQ(find_fault(trace), "");
    EXPECT_EQ(outline(trace),
              "thread 1: outer 20-50 { twin 20-50 { inner 30-40 } } later 50-70\n"
              "thread 2 async: declared 21-22~\n");
    EXPECT_EQ(trace.ranges().self_ns[0], 0);
    EXPECT_EQ(trace.ranges().self_ns[1], 20);
    for (const std::uint16_t flags : trace.ranges().flags) EXPECT_NE(flags & kRemote, 0);
    expect_same_when_stored(trace);
}

TEST(RemoteEvents, AreCutToTheSessionsWindow) {
    Sender sender;
    sender.range("before", 1, 4);
    sender.range("into", 5, 15);
    sender.range("in it", 6, 8);
    sender.range("out of", 95, 105);
    sender.range("open", 20, 30, 0, kUnfinished);
    sender.range("after", 101, 105);
    sender.range("alone", 1, 2, sender.lane(2));
    sender.mark("early", 9);
    sender.mark("in time", 10);
    sender->add_counter(0, 101, sender.site("count"), 1);
    LogWriter log = log_of(sender);
    const Trace trace = build_trace(log.raw());
    EXPECT_EQ(find_fault(trace), "");
    EXPECT_EQ(outline(trace), "thread 1: into 5-15< open 20-30> out of 95-100>\n");
    EXPECT_EQ(trace.ranges().self_ns[0], 5);
    EXPECT_EQ(trace.instants().size(), 1u);
    EXPECT_EQ(trace.counters().size(), 0u);
    EXPECT_EQ(problem_codes(trace), "remote_outside=6");
    EXPECT_EQ(trace.window().start_ns, 10);
    EXPECT_EQ(trace.window().end_ns, 100);
    expect_same_when_stored(trace);
}

TEST(RemoteEvents, TheFirstPartOfACallIsTheFirstOneThatIsThere) {
    const auto message = [](std::int64_t start, std::uint32_t part) {
        Sender sender;
        sender->set_window(start, start + 4);
        sender->add_detail(sender.range("call", start, start + 4), -1, 0, 0, 8, part);
        return sender.message();
    };
    LogWriter log;
    log.start(1, 10)
        .remote(ours(), "", message(3, kFirstPart))  // before the window
        .remote(ours(), "", message(20, 0))
        .remote(ours(), "", message(30, kLastPart))
        .stop(1, 100);
    const Trace trace = build_trace(log.raw());
    EXPECT_EQ(outline(trace), "thread 1: call 20-24 call 30-34\n");
    EXPECT_EQ(trace.ranges().flags[0], kRemote | kPart);
    EXPECT_EQ(trace.ranges().flags[1], kRemote | kPart | kFurtherPart);
    expect_same_when_stored(trace);
}

// L2 L3
TEST(RemoteEvents, KeepEveryTableOfTheSender) {
    for (unsigned seed = 0; seed < 200; ++seed) {
        SCOPED_TRACE(seed);
        const Trace sent = testing::RandomTrace(seed).make();
        const TraceData& data = sent.data();
        LogWriter log;
        detail::RemoteEventsRecord record = ours();
        record.head.reserved = 0;
        record.call_start = 400'000;
        record.call_end = 600'000;
        log.start(1, 10).remote(record, "", pack_events(sent)).stop(1, 1'000'000);
        const Trace trace = build_trace(log.raw());
        EXPECT_EQ(find_damage(trace.data()), "");
        EXPECT_EQ(problem_codes(trace).find("remote"), std::string::npos) << problem_codes(trace);
        EXPECT_EQ(trace.ranges().size(), data.range_start_ns.size());
        EXPECT_EQ(trace.instants().size(), data.instant_time_ns.size());
        EXPECT_EQ(trace.counters().size(), data.counter_time_ns.size());
        EXPECT_EQ(trace.memory().size(), data.memory_time_ns.size());
        EXPECT_EQ(trace.data().arguments.size(), data.arguments.size());
        EXPECT_EQ(trace.data().list_items.size(), data.list_items.size());
        EXPECT_EQ(trace.arrays().size(), data.arrays.size());
        EXPECT_EQ(trace.data().range_details.size(), data.range_details.size());
        EXPECT_GE(trace.links().size(), data.links.size());
        for (Row row = 0; row < sent.ranges().size(); ++row) {
            EXPECT_EQ(trace.range_name(row), sent.range_name(row));
            EXPECT_EQ(trace.ranges().duration_ns[row], sent.ranges().duration_ns[row]);
            EXPECT_EQ(trace.ranges().depth[row], sent.ranges().depth[row]);
            EXPECT_EQ(trace.ranges().flags[row], sent.ranges().flags[row] | kRemote);
            EXPECT_EQ(trace.range_arguments(row).size(), sent.range_arguments(row).size());
        }
        expect_same_when_stored(trace);
    }
}

// L4
TEST(RemoteEvents, ThreadsAreDistinguishedByAll64BitsOfTheirIds) {
    Sender sender;
    const std::int64_t large = std::int64_t{1} << 40;
    sender.range("a", 20, 30, sender.lane(5, large + 1));
    sender.range("b", 20, 30, sender.lane(5, large + 0x1'0000'0001));
    LogWriter log = log_of(sender);
    const Trace trace = build_trace(log.raw());
    EXPECT_EQ(find_fault(trace), "");
    EXPECT_EQ(outline(trace), "thread 5: a 20-30\nthread 5: b 20-30\n");
    EXPECT_EQ(trace.threads()[trace.tracks()[1].thread].os_tid, large + 0x1'0000'0001);
    expect_same_when_stored(trace);
}

TEST(RemoteEvents, ProcessesAreDistinguishedByPidHostAndNode) {
    Sender one;
    one.range("a", 20, 30);
    const std::string first = one.message();
    Sender two;
    two.range("b", 40, 50);
    Sender three("elsewhere");
    three.range("c", 40, 50);
    LogWriter log;
    detail::RemoteEventsRecord with_node = ours();
    with_node.node = 9;
    log.start(1, 10)
        .remote(ours(), "x ", first)
        .remote(ours(), "x ", two.message())
        .remote(ours(), "", three.message())
        .remote(with_node, "", first)
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

TEST(RemoteEvents, MessagesOfOneThreadThatCrossHaveSeparateTracks) {
    const auto message = [](const char* name, std::int64_t start, std::int64_t end) {
        Sender sender;
        sender->set_window(start, end);
        sender.range(name, start, end);
        return sender.message();
    };
    LogWriter log;
    log.start(1, 10)
        .remote(ours(), "", message("later", 60, 70))
        .remote(ours(), "", message("first", 20, 40))
        .remote(ours(), "", message("crossing", 30, 50))
        .stop(1, 100);
    const Trace trace = build_trace(log.raw());
    EXPECT_EQ(find_fault(trace), "");
    EXPECT_EQ(outline(trace), "thread 1: first 20-40 later 60-70\nthread 1: crossing 30-50\n");
    EXPECT_EQ(trace.tracks()[1].kind, TrackKind::Overlap);
    expect_same_when_stored(trace);
}

TEST(RemoteEvents, AreLinkedToTheInnermostRangeThatHoldsTheCall) {
    Sender sender;
    sender.range("root", 45, 48);
    const auto leaf = sender.range("leaf", 46, 47);
    const auto far = sender.range("far root", 46, 47, sender.lane(2));
    sender->add_link(leaf, far, LinkKind::Remote);
    detail::RemoteEventsRecord record = ours();
    record.thread = 1;
    record.call_start = 44;
    record.call_end = 50;
    LogWriter log = log_of(sender, record);
    log.thread(1).range("short", 43, 46, 2).range("call", 42, 52, 1).range("around", 40, 60, 0);
    const Trace trace = build_trace(log.raw());
    EXPECT_EQ(find_fault(trace), "");
    ASSERT_EQ(trace.links().size(), 2u);
    EXPECT_EQ(trace.range_name(trace.links()[0].from), "call");
    EXPECT_EQ(trace.range_name(trace.links()[0].to), "root");
    EXPECT_EQ(trace.links()[0].kind, LinkKind::Remote);
    EXPECT_EQ(trace.range_name(trace.links()[1].from), "leaf");
    EXPECT_EQ(trace.range_name(trace.links()[1].to), "far root");
    for (Row row = 0; row < trace.ranges().size(); ++row) {
        const bool is_own = trace.tracks()[trace.track_of(row)].thread == 0;
        EXPECT_EQ((trace.ranges().flags[row] & kRemote) == 0, is_own);
    }
    expect_same_when_stored(trace);
}

TEST(RemoteEvents, OfAnotherHostLieInTheMiddleOfTheCall) {
    const auto message = [] {
        Sender sender;
        sender->set_window(1'000'000, 1'000'020);
        sender.range("root", 1'000'005, 1'000'015);
        sender->process(0).realtime_offset_ns = 7'000'000;
        return sender.message();
    }();
    detail::RemoteEventsRecord record = ours();
    record.head.reserved = 0;
    record.call_start = 40;
    record.call_end = 80;
    LogWriter called;
    called.start(1, 10).remote(record, "", message).stop(1, 100);
    const Trace trace = build_trace(called.raw());
    EXPECT_EQ(outline(trace), "thread 1: root 55-65\n");
    EXPECT_EQ(problem_codes(trace), "");
    EXPECT_EQ(trace.processes()[1].realtime_offset_ns, 7'000'000 + 1'000'005 - 55);  // the same wall time
    record.call_start = 0;
    LogWriter guessed;
    guessed.start(1, 10).remote(record, "", message).stop(1, 100);
    EXPECT_EQ(outline(build_trace(guessed.raw())), "thread 1: root 65-75\n");
    EXPECT_EQ(problem_codes(build_trace(guessed.raw())), "remote_clock");
}

TEST(RemoteEvents, FactsOfTheSessionStayAndProblemsOfTheSenderAreAdded) {
    Sender sender;
    sender.range("root", 45, 48);
    sender->add_metadata("both", "1");
    sender->add_metadata("theirs", "2");
    sender->add_problem("dropped", "7 records were lost.", 7);
    sender->add_problem("crashed", "The program ended.");
    LogWriter log = log_of(sender);
    detail::MetadataRecord own{};
    own.session = 1;
    own.key = log.string("both");
    own.json_bytes = 1;
    log.journal(detail::JournalKind::Metadata, own, {std::byte{'3'}});
    const Trace trace = build_trace(log.raw());
    EXPECT_EQ(problem_codes(trace), "dropped=7");
    EXPECT_TRUE(trace.window().finished);
    ASSERT_EQ(trace.metadata().size(), 2u);
    EXPECT_EQ(trace.metadata()[0].json, "3");
    EXPECT_EQ(trace.metadata()[1].key, "theirs");
}

TEST(RemoteEvents, ADamagedMessageIsAProblemAndNothingElse) {
    Sender sender;
    sender.range("root", 45, 48);
    const std::string bytes = sender.message();
    std::string damaged = bytes;
    damaged[damaged.size() / 2] ^= 1;
    LogWriter log;
    log.start(1, 10).remote(ours(), "", damaged).remote(ours(), "", bytes).stop(1, 100);
    const Trace trace = build_trace(log.raw());
    EXPECT_EQ(find_fault(trace), "");
    EXPECT_EQ(outline(trace), "thread 1: root 45-48\n");
    EXPECT_EQ(problem_codes(trace), "remote_damaged");
}

// As the fuzzer does it, for fewer inputs.
TEST(RemoteEvents, ForgedMessagesLeaveTheTablesConsistent) {
    std::mt19937 random(11);
    int added = 0;
    for (unsigned i = 0; i < 1500; ++i) {
        std::vector<std::byte> bytes = pack_trace(testing::RandomTrace(i % 30).make().data(), false);
        for (unsigned k = 0; k <= random() % 3; ++k)
            bytes[random() % bytes.size()] = static_cast<std::byte>(random());
        testing::repair_checksums(bytes);
        detail::RemoteEventsRecord record = ours();
        record.head.reserved = i % 2 == 0 ? kRemoteClockIsOurs : 0;
        record.thread = 1;
        record.call_start = 40;
        record.call_end = 1'000'000;
        LogWriter log;
        log.born(1, "main", 5)
            .start(1, 10)
            .remote(record, "p ", {reinterpret_cast<const char*>(bytes.data()), bytes.size()})
            .remote(record, "", {reinterpret_cast<const char*>(bytes.data()), bytes.size()})
            .stop(1, 2'000'000);
        log.thread(1).range("call", 20, 1'500'000, 0);
        const Trace trace = build_trace(log.raw());
        ASSERT_EQ(find_damage(trace.data()), "") << i;
        ASSERT_EQ(trace.range_name(0), "call") << i;
        if (problem_codes(trace).find("remote_damaged") == std::string::npos) ++added;
    }
    EXPECT_GT(added, 100);
}

}  // namespace
}  // namespace marey
