// recording.cpp: the public interface: sessions, ranges, values, threads.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <marey/all.h>
#include <marey/c.h>

#include "support/memory_use.h"
#include "support/range_lookup.h"

namespace {

TEST(Recording, NestsRangesAsTheProgramDoes) {
    marey::Session session(marey::SessionOptions{});
    {
        MAREY_RANGE("a");
        {
            MAREY_RANGE("b");
            MAREY_RANGE("c");  // two in one block do not collide
        }
        MAREY_RANGE("d");
    }
    const marey::Trace trace = session.stop();
    EXPECT_EQ(names(trace), (std::multiset<std::string>{"a", "b", "c", "d"}));
    EXPECT_EQ(parent_name(trace, "a"), "");
    EXPECT_EQ(parent_name(trace, "b"), "a");
    EXPECT_EQ(parent_name(trace, "c"), "b");
    EXPECT_EQ(parent_name(trace, "d"), "a");
    EXPECT_TRUE(trace.problems().empty()) << trace.problems()[0].text;
}

void separate_function() {
    MAREY_FUNCTION();
}

TEST(Recording, NamesFunctionsAndScopes) {
    marey::Session session(marey::SessionOptions{});
    separate_function();
    { MAREY_RANGE_SCOPE(marey::Scope::BackwardFunction, "backward"); }
    const marey::Trace trace = session.stop();
    const marey::Row function = find(trace, "separate_function");
    ASSERT_NE(function, marey::kNoRow);
    const marey::SiteInfo& site = trace.sites()[trace.ranges().site[function]];
    EXPECT_EQ(site.scope, marey::Scope::Function);
    EXPECT_NE(trace.string(site.file).find("recording.cpp"), std::string_view::npos);
    EXPECT_GT(site.line, 0u);
    EXPECT_EQ(trace.sites()[trace.ranges().site[find(trace, "backward")]].scope,
              marey::Scope::BackwardFunction);
}

// R4
TEST(Recording, KeepsOnlyTheScopesThatTheSessionRequested) {
    marey::Session all(marey::SessionOptions{});
    marey::Session some(marey::SessionOptions{.scopes = {marey::Scope::Function}});
    marey::Session unasked(marey::SessionOptions{.scopes = {}});
    {
        MAREY_RANGE("user");
        MAREY_RANGE_SCOPE(marey::Scope::Function, "function");
    }
    const marey::Trace trace = some.stop();
    EXPECT_EQ(names(trace), (std::multiset<std::string>{"function"}));
    EXPECT_EQ(trace.ranges().depth[0], 0u);
    EXPECT_EQ(names(all.stop()).size(), 2u);
    EXPECT_EQ(names(unasked.stop()).size(), 2u);
}

TEST(Recording, AttachesTypedValues) {
    marey::Session session(marey::SessionOptions{});
    {
        const std::string text = "some text";
        const std::vector<std::int64_t> sizes = {3, 4, 5};
        const std::vector<int> many(100, 7);
        MAREY_RANGE("values", "n", 42, "real", 1.5, "yes", true, "text", text, "literal", "abc", "sizes",
                    sizes, "many", many);
        marey::instant("point", "left", -1);
    }
    const marey::Trace trace = session.stop();
    const auto arguments = trace.range_arguments(find(trace, "values"));
    ASSERT_EQ(arguments.size(), 7u);
    EXPECT_EQ(trace.string(arguments[0].key), "n");
    EXPECT_EQ(arguments[0].integer, 42);
    EXPECT_EQ(arguments[1].real, 1.5);
    EXPECT_EQ(arguments[2].kind, marey::ValueKind::Bool);
    EXPECT_TRUE(arguments[2].boolean);
    EXPECT_EQ(trace.string(arguments[3].string), "some text");
    EXPECT_EQ(trace.string(arguments[4].string), "abc");
    ASSERT_EQ(arguments[5].kind, marey::ValueKind::List);
    EXPECT_EQ(arguments[5].list.count, 3u);
    EXPECT_EQ(trace.list_items()[arguments[5].list.first + 2].integer, 5);
    EXPECT_EQ(arguments[6].list.count, 30u);
    EXPECT_TRUE(arguments[6].truncated);
    ASSERT_EQ(trace.instants().size(), 1u);
    EXPECT_EQ(trace.instant_arguments(0)[0].integer, -1);
}

TEST(Recording, DoesNotEvaluateValuesThatAreNotKept) {
    int evaluated = 0;
    const auto count = [&] { return ++evaluated; };
    { MAREY_RANGE("off", "n", count()); }
    EXPECT_EQ(evaluated, 0);
    marey::Session session(marey::SessionOptions{.record_values = false});
    { MAREY_RANGE("without values", "n", count()); }
    EXPECT_EQ(evaluated, 0);
    EXPECT_EQ(names(session.stop()).size(), 1u);
    session.start();
    { MAREY_RANGE("with values", "n", count()); }
    EXPECT_EQ(evaluated, 1);
}

TEST(Recording, AcceptsNamesMadeAtRunTime) {
    marey::Session session(marey::SessionOptions{});
    std::string buffer;
    for (int i = 0; i < 3000; ++i) {
        buffer = "request number " + std::to_string(i);
        MAREY_RANGE_DYNAMIC(buffer);
    }
    const std::string huge(20'000, 'x');
    { MAREY_RANGE_DYNAMIC(huge); }
    { MAREY_RANGE_DYNAMIC(huge); }
    { MAREY_RANGE_DYNAMIC(std::string_view()); }
    const auto found = names(session.stop());
    EXPECT_EQ(found.count("request number 2999"), 1u);
    EXPECT_EQ(found.count(std::string(8192, 'x')), 2u);
    EXPECT_EQ(found.count(""), 1u);
    EXPECT_EQ(found.size(), 3003u);
}

TEST(Recording, ALaterTraceCarriesOnlyTheNamesThatItUses) {
    {
        marey::Session session(marey::SessionOptions{});
        for (int i = 0; i < 5000; ++i) {
            MAREY_RANGE_DYNAMIC("name " + std::to_string(i));
        }
        EXPECT_EQ(session.stop().ranges().size(), 5000U);
    }
    marey::Session session(marey::SessionOptions{});
    {
        MAREY_RANGE_DYNAMIC(std::string("name 4711"));
        MAREY_RANGE("after many", "text", "a unique value");
        marey::instant("a mark after many");
        marey::counter("a counter after many", 3);
    }
    const marey::Trace trace = session.stop();
    EXPECT_EQ(names(trace), (std::multiset<std::string>{"after many", "name 4711"}));
    EXPECT_EQ(parent_name(trace, "after many"), "name 4711");
    const auto values = trace.range_arguments(find(trace, "after many"));
    ASSERT_EQ(values.size(), 1U);
    EXPECT_EQ(trace.string(values[0].key), "text");
    EXPECT_EQ(trace.string(values[0].string), "a unique value");
    EXPECT_EQ(trace.string(trace.sites()[trace.instants().site[0]].name), "a mark after many");
    EXPECT_EQ(trace.string(trace.sites()[trace.counters().site[0]].name), "a counter after many");
    EXPECT_NE(trace.string(trace.processes()[0].name), "");
    EXPECT_LT(trace.string_count(), 1000U);
    EXPECT_LT(trace.sites().size(), 1000U);
}

TEST(Recording, TheMemoryOfLogsIsReturnedWhenTheLastSessionHasEnded) {
    if (!kMemoryIsOurs) GTEST_SKIP() << "the sanitizer keeps freed memory";
    const auto record = [](int ranges) {
        marey::Session session(marey::SessionOptions{});
        for (int i = 0; i < ranges; ++i) {
            MAREY_RANGE("many");
        }
        const std::size_t while_recording = resident_bytes();
        session.discard();
        return while_recording;
    };
    record(1000);
    const std::size_t before = resident_bytes();
    EXPECT_GT(record(4'000'000), before + (48 << 20));
    EXPECT_LT(resident_bytes(), before + (8 << 20));
}

TEST(Recording, ShowsInstantsCountersAndThreadNames) {
    marey::Session session(marey::SessionOptions{});
    std::thread([] {
        marey::thread_name("worker");
        marey::counter("queue", 3);
        marey::counter("load", 0.5);
        marey::instant("flush");
    }).join();
    const marey::Trace trace = session.stop();
    ASSERT_EQ(trace.counters().size(), 2u);
    EXPECT_EQ(trace.counters().value[0], 3.0);
    EXPECT_EQ(trace.counters().value[1], 0.5);
    EXPECT_EQ(trace.string(trace.sites()[trace.counters().site[0]].name), "queue");
    ASSERT_EQ(trace.instants().size(), 1u);
    EXPECT_EQ(trace.string(trace.threads()[trace.instants().thread[0]].name), "worker");
}

// L6
TEST(Recording, LetsARangeEndEarlyLaterAndElsewhere) {
    marey::Session session(marey::SessionOptions{});
    marey::Range nested("nested");
    { MAREY_RANGE("inside nested"); }
    nested.end();
    nested.end();
    marey::Range crossing;
    {
        MAREY_RANGE("scope");
        crossing = marey::Range("crossing");
    }
    crossing.end();
    marey::Range moved("moved away", "n", 1);
    std::thread([range = std::move(moved)]() mutable { range.end(); }).join();
    marey::Range never("never ended");
    const marey::Trace trace = session.stop();
    EXPECT_FALSE(has_flag(trace, "nested", marey::kAsync));
    EXPECT_EQ(parent_name(trace, "inside nested"), "nested");
    EXPECT_TRUE(has_flag(trace, "crossing", marey::kAsync));
    EXPECT_TRUE(has_flag(trace, "moved away", marey::kAsync));
    EXPECT_EQ(trace.range_arguments(find(trace, "moved away")).size(), 1u);
    EXPECT_TRUE(has_flag(trace, "never ended", marey::kUnfinished));
    EXPECT_EQ(names(trace).size(), 6u);
}

TEST(Recording, ShowsADetachedRangeOnAnAsyncTrackWhereverItEnds) {
    marey::Session session(marey::SessionOptions{});
    marey::Range life = marey::Range::apart("life");
    { MAREY_RANGE("work"); }
    life.end();
    marey::Range open = marey::Range::apart("open");
    { MAREY_RANGE("more work"); }
    const marey::Trace trace = session.stop();
    EXPECT_TRUE(has_flag(trace, "life", marey::kAsync));
    EXPECT_TRUE(has_flag(trace, "open", marey::kAsync));
    EXPECT_TRUE(has_flag(trace, "open", marey::kUnfinished));
    EXPECT_EQ(parent_name(trace, "work"), "");
    EXPECT_EQ(parent_name(trace, "more work"), "");
}

namespace {

std::uint32_t thread_of(const marey::Trace& trace, std::string_view name) {
    return trace.threads()[trace.tracks()[trace.track_of(find(trace, std::string(name)))].thread].id;
}

}  // namespace

// R10
TEST(Recording, TakesAScopeThatAnotherThreadEndsOutOfTheNesting) {
    marey::Session session(marey::SessionOptions{});
    auto operation = std::make_unique<marey::Operation>(marey::Scope::User);
    const marey::KeyedValue values[] = {{"key", marey::Value(std::int64_t{7})}};
    {
        MAREY_RANGE("around");
        operation->begin("passed on", {}, {}, values);
        { MAREY_RANGE("before"); }
        std::thread([&] {
            MAREY_RANGE("there");
            operation.reset();
        }).join();
        MAREY_RANGE("after");
        MAREY_RANGE("deeper");
    }
    operation = std::make_unique<marey::Operation>(marey::Scope::User);
    operation->begin("last", {}, {}, values);
    std::thread([&] { operation.reset(); }).join();
    const marey::Trace trace = session.stop();  // this thread has not handled it yet
    for (const char* name : {"passed on", "last"}) {
        EXPECT_TRUE(has_flag(trace, name, marey::kAsync)) << name;
        EXPECT_FALSE(has_flag(trace, name, marey::kUnfinished)) << name;
        EXPECT_EQ(trace.range_arguments(find(trace, name)).size(), 1u) << name;
        EXPECT_EQ(thread_of(trace, name), thread_of(trace, "around")) << name;
    }
    EXPECT_EQ(parent_name(trace, "before"), "around");
    EXPECT_EQ(parent_name(trace, "after"), "around");
    EXPECT_EQ(parent_name(trace, "deeper"), "after");
    EXPECT_EQ(names(trace).size(), 7u);
    EXPECT_TRUE(trace.problems().empty()) << trace.problems()[0].text;

    marey::Session later(marey::SessionOptions{});
    { MAREY_RANGE("later"); }
    const marey::Trace rest = later.stop();
    EXPECT_EQ(names(rest), (std::multiset<std::string>{"later"}));
    EXPECT_EQ(rest.ranges().depth[0], 0u);
}

// R10
TEST(Recording, AScopeThatAnotherThreadEndsIsAsyncToItsObserversToo) {
    static bool was_async = false;
    const auto handle =
        marey::add_observer({.end = [](const marey::ObservedRange& range, marey::ObserverContext*, void*) {
            was_async = range.is_async();
        }});
    marey::Session session(marey::SessionOptions{});
    const auto opened = marey::detail::open_range(marey::detail::dynamic_site("watched", marey::Scope::User),
                                                  marey::Scope::User);
    const std::uint32_t thread = marey::detail::thread_number();
    std::thread([&] { marey::detail::close_elsewhere(opened, thread); }).join();
    marey::remove_observer(handle);
    EXPECT_TRUE(was_async);
    const marey::Trace trace = session.stop();
    EXPECT_TRUE(has_flag(trace, "watched", marey::kAsync));
    EXPECT_FALSE(has_flag(trace, "watched", marey::kUnfinished));
}

// Threads that end each other's ranges all the time, against sessions that come and go.
TEST(Recording, LosesNothingWhileThreadsEndEachOthersScopes) {
    constexpr int kRounds = 2000;
    marey::Session session(marey::SessionOptions{});
    std::atomic<marey::Operation*> handed{nullptr};
    std::atomic<bool> done{false};
    std::thread ender([&] {
        while (!done.load() || handed.load() != nullptr) delete handed.exchange(nullptr);
    });
    for (int i = 0; i < kRounds; ++i) {
        auto* const operation = new marey::Operation(marey::Scope::User);
        operation->begin("handed on");
        { MAREY_RANGE("mine"); }
        for (marey::Operation* none = nullptr; !handed.compare_exchange_weak(none, operation);)
            none = nullptr;
        if (i % 100 == 0) marey::Session(marey::SessionOptions{}).stop();
        { MAREY_RANGE("mine"); }
    }
    done.store(true);
    ender.join();
    const marey::Trace trace = session.stop();
    EXPECT_EQ(names(trace).count("mine"), 2u * kRounds);
    EXPECT_EQ(names(trace).count("handed on"), std::size_t{kRounds});
    std::size_t unfinished = 0;
    for (const std::uint16_t flags : trace.ranges().flags) unfinished += (flags & marey::kUnfinished) != 0;
    EXPECT_EQ(unfinished, 0u);
    EXPECT_TRUE(trace.problems().empty()) << trace.problems()[0].text;
}

TEST(Recording, TakesAScopeThatEndsOutOfOrderOutOfTheNesting) {
    using marey::detail::ScopedRange;
    static marey::detail::Site first{"first", __FILE__, __LINE__, marey::Scope::User};
    static marey::detail::Site second{"second", __FILE__, __LINE__, marey::Scope::User};
    marey::Session session(marey::SessionOptions{});
    {
        MAREY_RANGE("around");
        auto a = std::make_unique<ScopedRange>(first, marey::Scope::User);
        auto b = std::make_unique<ScopedRange>(second, marey::Scope::User);
        { MAREY_RANGE("inside both"); }
        a.reset();
        { MAREY_RANGE("inside second"); }
    }
    const marey::Trace trace = session.stop();
    EXPECT_TRUE(has_flag(trace, "first", marey::kAsync));
    EXPECT_FALSE(has_flag(trace, "second", marey::kAsync) && has_flag(trace, "around", marey::kAsync));
    EXPECT_EQ(parent_name(trace, "inside second"), "second");
    EXPECT_EQ(parent_name(trace, "inside both"), "second");
    EXPECT_EQ(names(trace).size(), 5u);
}

std::atomic<int> handled{0};
void record_in_handler(int) {
    MAREY_RANGE("in a signal handler");
    handled.fetch_add(1);
}

TEST(Signals, HandlersMayRecordAnywhereWithoutHarm) {
    struct sigaction action {};
    action.sa_handler = record_in_handler;
    sigaction(SIGUSR1, &action, nullptr);
    marey::Session session(marey::SessionOptions{.max_bytes = 1 << 20, .policy = marey::Policy::Ring});
    std::atomic<bool> done{false};
    std::thread victim([&] {
        record_in_handler(0);  // the first use of a site and of a thread allocates, which a handler must not
        while (!done.load(std::memory_order_relaxed)) {
            MAREY_RANGE("outer");
            MAREY_RANGE("inner", "n", 1);
        }
    });
    for (int i = 0; i < 3000; ++i) {
        while (handled.load() == 0) std::this_thread::yield();
        const int before = handled.load();
        pthread_kill(victim.native_handle(), SIGUSR1);
        while (handled.load() == before) std::this_thread::yield();
    }
    done.store(true);
    victim.join();
    const marey::Trace trace = session.stop();
    for (marey::Row row = 0; row < trace.ranges().size(); ++row) {
        // A handler that runs while a range opens is inside by depth and before it by time: it goes to an
        // async track.
        if (trace.range_name(row) == "in a signal handler") continue;
        ASSERT_EQ(trace.ranges().flags[row] & marey::kAsync, 0) << trace.range_name(row);
        if (trace.range_name(row) == "inner") {
            ASSERT_EQ(trace.range_name(trace.ranges().parent[row]), "outer")
                << "row " << row << " of " << trace.ranges().size() << " at " << trace.ranges().start_ns[row]
                << " of " << trace.window().end_ns << " ns, " << trace.problems().size() << " problems";
        }
    }
    for (const marey::ThreadInfo& thread : trace.threads()) EXPECT_EQ(thread.resyncs, 0u);
}

TEST(CInterface, EndsTheBeginItBelongsToAcrossStartsAndStops) {
    const marey_site outer = marey_intern("c outer", __FILE__, __LINE__, MAREY_SCOPE_USER);
    const marey_site inner = marey_intern("c inner", nullptr, 0, MAREY_SCOPE_FUNCTION);
    marey_begin(outer);  // off: not recorded, its end must not end anything else
    marey::Session session(marey::SessionOptions{});
    marey_begin(inner);
    marey_begin_named("c innermost");
    marey_end();
    session.snapshot();
    marey_end();
    marey_end();  // of the one made while off
    { MAREY_RANGE("after"); }
    const marey::Trace trace = session.stop();
    EXPECT_EQ(names(trace), (std::multiset<std::string>{"after", "c inner", "c innermost"}));
    EXPECT_EQ(parent_name(trace, "c innermost"), "c inner");
    EXPECT_EQ(parent_name(trace, "after"), "");
    EXPECT_TRUE(trace.problems().empty()) << trace.problems()[0].text;
}

TEST(CInterface, ResynchronisesOnASite) {
    marey::Session session(marey::SessionOptions{});
    const marey_site outer = marey_intern("outer", nullptr, 0, MAREY_SCOPE_USER);
    const marey_site lost = marey_intern("lost", nullptr, 0, MAREY_SCOPE_USER);
    marey_begin(outer);
    marey_begin(lost);
    marey_end_site(outer);
    marey_end();  // one too many
    { MAREY_RANGE("after"); }
    const marey::Trace trace = session.stop();
    EXPECT_EQ(parent_name(trace, "lost"), "outer");
    EXPECT_TRUE(has_flag(trace, "lost", marey::kEndInferred | marey::kUnfinished));
    EXPECT_EQ(parent_name(trace, "after"), "");
    std::uint64_t resyncs = 0;
    for (const marey::ThreadInfo& thread : trace.threads()) resyncs += thread.resyncs;
    EXPECT_EQ(resyncs, 2u);
}

TEST(CInterface, TheWriterTableFillsLogsThatAreNotThreads) {
    const marey_writer* const writer = marey_writer_table(MAREY_WRITER_VERSION);
    ASSERT_NE(writer, nullptr);
    EXPECT_EQ(marey_writer_table(MAREY_WRITER_VERSION + 1), nullptr);
    marey_log* const stream = writer->log_create("stream 7");
    const marey_site site = writer->intern("kernel", nullptr, 0, 13);
    EXPECT_EQ(writer->range(stream, site, 1, 2, 0), 0);  // nothing records
    marey::Session session(marey::SessionOptions{});
    const std::uint64_t now = writer->now();
    EXPECT_EQ(writer->range(stream, site, now, now + 1000, 1), 1);
    EXPECT_EQ(writer->range(stream, site, now, now + 5000, 0), 1);
    EXPECT_EQ(writer->instant(stream, site, now + 6000), 1);
    EXPECT_EQ(writer->counter(stream, site, now + 7000, 2.5), 1);
    EXPECT_EQ(writer->blob(stream, site, now + 8000, 99, "abc", 3), 1);
    while (writer->now() < now + 10'000) {
    }
    const marey::Trace trace = session.stop();
    ASSERT_EQ(trace.ranges().size(), 2u);
    EXPECT_EQ(trace.ranges().parent[1], 0u);
    EXPECT_EQ(trace.string(trace.threads()[trace.tracks()[0].thread].name), "stream 7");
    EXPECT_EQ(trace.threads()[trace.tracks()[0].thread].os_tid, 0);
    EXPECT_EQ(trace.instants().size(), 1u);
    EXPECT_EQ(trace.counters().value[0], 2.5);
    writer->log_close(stream);
}

TEST(Costs, AreMeasuredAndCarriedByTheTrace) {
    marey::Session session(marey::SessionOptions{});
    const marey::Trace trace = session.stop();
    ASSERT_EQ(trace.costs().size(), 5u);
    EXPECT_EQ(trace.costs()[0].kind, "range");
    EXPECT_EQ(trace.costs()[4].kind, "allocation_report");
    for (const marey::CostInfo& cost : trace.costs()) EXPECT_GT(cost.ns, 0);
}

}  // namespace
