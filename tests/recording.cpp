// recording.cpp: what a user of the library sees: sessions, ranges, values, threads.
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
#include <kymo/c.h>
#include <kymo/kymo.h>

#include "range_lookup.h"

namespace {

std::multiset<std::string> names(const kymo::Trace& trace) {
    std::multiset<std::string> found;
    for (kymo::Row row = 0; row < trace.ranges().size(); ++row) found.emplace(trace.range_name(row));
    return found;
}

// Under a sanitizer freed memory is kept back, and growth says nothing.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMemoryIsOurs = false;
#else
constexpr bool kMemoryIsOurs = true;
#endif

std::size_t resident_bytes() {
    std::size_t size = 0;
    std::size_t resident = 0;
    FILE* const file = std::fopen("/proc/self/statm", "r");
    if (std::fscanf(file, "%zu %zu", &size, &resident) != 2) resident = 0;
    std::fclose(file);
    return resident * 4096;
}

TEST(Recording, NestsRangesAsTheProgramDoes) {
    kymo::Session session(kymo::SessionOptions{});
    {
        KYMO_RANGE("a");
        {
            KYMO_RANGE("b");
            KYMO_RANGE("c");  // two in one block do not collide
        }
        KYMO_RANGE("d");
    }
    const kymo::Trace trace = session.stop();
    EXPECT_EQ(names(trace), (std::multiset<std::string>{"a", "b", "c", "d"}));
    EXPECT_EQ(parent_name(trace, "a"), "");
    EXPECT_EQ(parent_name(trace, "b"), "a");
    EXPECT_EQ(parent_name(trace, "c"), "b");
    EXPECT_EQ(parent_name(trace, "d"), "a");
    EXPECT_TRUE(trace.problems().empty()) << trace.problems()[0].text;
}

void a_function_of_its_own() {
    KYMO_FUNCTION();
}

TEST(Recording, NamesFunctionsAndScopes) {
    kymo::Session session(kymo::SessionOptions{});
    a_function_of_its_own();
    { KYMO_RANGE_SCOPE(kymo::Scope::BackwardFunction, "backward"); }
    const kymo::Trace trace = session.stop();
    const kymo::Row function = find(trace, "a_function_of_its_own");
    ASSERT_NE(function, kymo::kNoRow);
    const kymo::SiteInfo& site = trace.sites()[trace.ranges().site[function]];
    EXPECT_EQ(site.scope, kymo::Scope::Function);
    EXPECT_NE(trace.string(site.file).find("recording.cpp"), std::string_view::npos);
    EXPECT_GT(site.line, 0u);
    EXPECT_EQ(trace.sites()[trace.ranges().site[find(trace, "backward")]].scope,
              kymo::Scope::BackwardFunction);
}

// R4
TEST(Recording, KeepsOnlyTheScopesThatTheSessionAskedFor) {
    kymo::Session all(kymo::SessionOptions{});
    kymo::Session some(kymo::SessionOptions{.scopes = {kymo::Scope::Function}});
    kymo::Session unasked(kymo::SessionOptions{.scopes = {}});
    {
        KYMO_RANGE("user");
        KYMO_RANGE_SCOPE(kymo::Scope::Function, "function");
    }
    const kymo::Trace trace = some.stop();
    EXPECT_EQ(names(trace), (std::multiset<std::string>{"function"}));
    EXPECT_EQ(trace.ranges().depth[0], 0u);
    EXPECT_EQ(names(all.stop()).size(), 2u);
    EXPECT_EQ(names(unasked.stop()).size(), 2u);
}

TEST(Recording, AttachesTypedValues) {
    kymo::Session session(kymo::SessionOptions{});
    {
        const std::string text = "some text";
        const std::vector<std::int64_t> sizes = {3, 4, 5};
        const std::vector<int> many(100, 7);
        KYMO_RANGE("values", "n", 42, "real", 1.5, "yes", true, "text", text, "literal", "abc", "sizes",
                   sizes, "many", many);
        kymo::instant("point", "left", -1);
    }
    const kymo::Trace trace = session.stop();
    const auto arguments = trace.range_arguments(find(trace, "values"));
    ASSERT_EQ(arguments.size(), 7u);
    EXPECT_EQ(trace.string(arguments[0].key), "n");
    EXPECT_EQ(arguments[0].integer, 42);
    EXPECT_EQ(arguments[1].real, 1.5);
    EXPECT_EQ(arguments[2].kind, kymo::ValueKind::Bool);
    EXPECT_TRUE(arguments[2].boolean);
    EXPECT_EQ(trace.string(arguments[3].string), "some text");
    EXPECT_EQ(trace.string(arguments[4].string), "abc");
    ASSERT_EQ(arguments[5].kind, kymo::ValueKind::List);
    EXPECT_EQ(arguments[5].list.count, 3u);
    EXPECT_EQ(trace.list_items()[arguments[5].list.first + 2].integer, 5);
    EXPECT_EQ(arguments[6].list.count, 30u);
    EXPECT_TRUE(arguments[6].truncated);
    ASSERT_EQ(trace.instants().size(), 1u);
    EXPECT_EQ(trace.instant_arguments(0)[0].integer, -1);
}

TEST(Recording, DoesNotEvaluateValuesThatNobodyKeeps) {
    int evaluated = 0;
    const auto count = [&] { return ++evaluated; };
    { KYMO_RANGE("off", "n", count()); }
    EXPECT_EQ(evaluated, 0);
    kymo::Session session(kymo::SessionOptions{.record_values = false});
    { KYMO_RANGE("without values", "n", count()); }
    EXPECT_EQ(evaluated, 0);
    EXPECT_EQ(names(session.stop()).size(), 1u);
    session.start();
    { KYMO_RANGE("with values", "n", count()); }
    EXPECT_EQ(evaluated, 1);
}

TEST(Recording, TakesNamesMadeAtRunTime) {
    kymo::Session session(kymo::SessionOptions{});
    std::string buffer;
    for (int i = 0; i < 3000; ++i) {
        buffer = "request number " + std::to_string(i);
        KYMO_RANGE_DYNAMIC(buffer);
    }
    const std::string huge(20'000, 'x');
    { KYMO_RANGE_DYNAMIC(huge); }
    { KYMO_RANGE_DYNAMIC(huge); }
    { KYMO_RANGE_DYNAMIC(std::string_view()); }
    const auto found = names(session.stop());
    EXPECT_EQ(found.count("request number 2999"), 1u);
    EXPECT_EQ(found.count(std::string(8192, 'x')), 2u);
    EXPECT_EQ(found.count(""), 1u);
    EXPECT_EQ(found.size(), 3003u);
}

TEST(Recording, ALaterTraceCarriesOnlyTheNamesThatItHas) {
    {
        kymo::Session session(kymo::SessionOptions{});
        for (int i = 0; i < 5000; ++i) {
            KYMO_RANGE_DYNAMIC("name " + std::to_string(i));
        }
        EXPECT_EQ(session.stop().ranges().size(), 5000U);
    }
    kymo::Session session(kymo::SessionOptions{});
    {
        KYMO_RANGE_DYNAMIC(std::string("name 4711"));
        KYMO_RANGE("after many", "text", "a value of its own");
        kymo::instant("a mark after many");
        kymo::counter("a counter after many", 3);
    }
    const kymo::Trace trace = session.stop();
    EXPECT_EQ(names(trace), (std::multiset<std::string>{"after many", "name 4711"}));
    EXPECT_EQ(parent_name(trace, "after many"), "name 4711");
    const auto values = trace.range_arguments(find(trace, "after many"));
    ASSERT_EQ(values.size(), 1U);
    EXPECT_EQ(trace.string(values[0].key), "text");
    EXPECT_EQ(trace.string(values[0].string), "a value of its own");
    EXPECT_EQ(trace.string(trace.sites()[trace.instants().site[0]].name), "a mark after many");
    EXPECT_EQ(trace.string(trace.sites()[trace.counters().site[0]].name), "a counter after many");
    EXPECT_NE(trace.string(trace.processes()[0].name), "");
    EXPECT_LT(trace.string_count(), 100U);
    EXPECT_EQ(trace.sites().size(), 4U);
}

TEST(Recording, TheMemoryOfLogsGoesBackWhenTheLastSessionHasEnded) {
    if (!kMemoryIsOurs) GTEST_SKIP() << "the sanitizer keeps freed memory";
    const auto record = [](int ranges) {
        kymo::Session session(kymo::SessionOptions{});
        for (int i = 0; i < ranges; ++i) {
            KYMO_RANGE("many");
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
    kymo::Session session(kymo::SessionOptions{});
    std::thread([] {
        kymo::thread_name("worker");
        kymo::counter("queue", 3);
        kymo::counter("load", 0.5);
        kymo::instant("flush");
    }).join();
    const kymo::Trace trace = session.stop();
    ASSERT_EQ(trace.counters().size(), 2u);
    EXPECT_EQ(trace.counters().value[0], 3.0);
    EXPECT_EQ(trace.counters().value[1], 0.5);
    EXPECT_EQ(trace.string(trace.sites()[trace.counters().site[0]].name), "queue");
    ASSERT_EQ(trace.instants().size(), 1u);
    EXPECT_EQ(trace.string(trace.threads()[trace.instants().thread[0]].name), "worker");
}

// L6
TEST(Recording, LetsARangeEndEarlyLaterAndElsewhere) {
    kymo::Session session(kymo::SessionOptions{});
    kymo::Range nested("nested");
    { KYMO_RANGE("inside nested"); }
    nested.end();
    nested.end();
    kymo::Range crossing;
    {
        KYMO_RANGE("scope");
        crossing = kymo::Range("crossing");
    }
    crossing.end();
    kymo::Range moved("moved away", "n", 1);
    std::thread([range = std::move(moved)]() mutable { range.end(); }).join();
    kymo::Range never("never ended");
    const kymo::Trace trace = session.stop();
    EXPECT_FALSE(has_flag(trace, "nested", kymo::kAsync));
    EXPECT_EQ(parent_name(trace, "inside nested"), "nested");
    EXPECT_TRUE(has_flag(trace, "crossing", kymo::kAsync));
    EXPECT_TRUE(has_flag(trace, "moved away", kymo::kAsync));
    EXPECT_EQ(trace.range_arguments(find(trace, "moved away")).size(), 1u);
    EXPECT_TRUE(has_flag(trace, "never ended", kymo::kUnfinished));
    EXPECT_EQ(names(trace).size(), 6u);
}

TEST(Recording, ShowsARangeThatIsApartOnAnAsyncTrackWhereverItEnds) {
    kymo::Session session(kymo::SessionOptions{});
    kymo::Range life = kymo::Range::apart("life");
    { KYMO_RANGE("work"); }
    life.end();
    kymo::Range open = kymo::Range::apart("open");
    { KYMO_RANGE("more work"); }
    const kymo::Trace trace = session.stop();
    EXPECT_TRUE(has_flag(trace, "life", kymo::kAsync));
    EXPECT_TRUE(has_flag(trace, "open", kymo::kAsync));
    EXPECT_TRUE(has_flag(trace, "open", kymo::kUnfinished));
    EXPECT_EQ(parent_name(trace, "work"), "");
    EXPECT_EQ(parent_name(trace, "more work"), "");
}

namespace {

std::uint32_t thread_of(const kymo::Trace& trace, std::string_view name) {
    return trace.threads()[trace.tracks()[trace.track_of(find(trace, std::string(name)))].thread].id;
}

}  // namespace

// R10
TEST(Recording, TakesAScopeThatAnotherThreadEndsOutOfTheNesting) {
    kymo::Session session(kymo::SessionOptions{});
    auto operation = std::make_unique<kymo::Operation>(kymo::Scope::User);
    const kymo::KeyedValue values[] = {{"key", kymo::Value(std::int64_t{7})}};
    {
        KYMO_RANGE("around");
        operation->begin("passed on", {}, {}, values);
        { KYMO_RANGE("before"); }
        std::thread([&] {
            KYMO_RANGE("there");
            operation.reset();
        }).join();
        KYMO_RANGE("after");
        KYMO_RANGE("deeper");
    }
    operation = std::make_unique<kymo::Operation>(kymo::Scope::User);
    operation->begin("last", {}, {}, values);
    std::thread([&] { operation.reset(); }).join();
    const kymo::Trace trace = session.stop();  // this thread has not come by since
    for (const char* name : {"passed on", "last"}) {
        EXPECT_TRUE(has_flag(trace, name, kymo::kAsync)) << name;
        EXPECT_FALSE(has_flag(trace, name, kymo::kUnfinished)) << name;
        EXPECT_EQ(trace.range_arguments(find(trace, name)).size(), 1u) << name;
        EXPECT_EQ(thread_of(trace, name), thread_of(trace, "around")) << name;
    }
    EXPECT_EQ(parent_name(trace, "before"), "around");
    EXPECT_EQ(parent_name(trace, "after"), "around");
    EXPECT_EQ(parent_name(trace, "deeper"), "after");
    EXPECT_EQ(names(trace).size(), 7u);
    EXPECT_TRUE(trace.problems().empty()) << trace.problems()[0].text;

    kymo::Session later(kymo::SessionOptions{});
    { KYMO_RANGE("later"); }
    const kymo::Trace rest = later.stop();
    EXPECT_EQ(names(rest), (std::multiset<std::string>{"later"}));
    EXPECT_EQ(rest.ranges().depth[0], 0u);
}

// R10
TEST(Recording, AScopeThatAnotherThreadEndsIsAsyncToItsObserversToo) {
    static bool was_async = false;
    const auto handle =
        kymo::add_observer({.end = [](const kymo::ObservedRange& range, kymo::ObserverContext*, void*) {
            was_async = range.is_async();
        }});
    kymo::Session session(kymo::SessionOptions{});
    const auto opened =
        kymo::detail::open_range(kymo::detail::dynamic_site("watched", kymo::Scope::User), kymo::Scope::User);
    const std::uint32_t thread = kymo::detail::thread_number();
    std::thread([&] { kymo::detail::close_elsewhere(opened, thread); }).join();
    kymo::remove_observer(handle);
    EXPECT_TRUE(was_async);
    const kymo::Trace trace = session.stop();
    EXPECT_TRUE(has_flag(trace, "watched", kymo::kAsync));
    EXPECT_FALSE(has_flag(trace, "watched", kymo::kUnfinished));
}

// Threads that end ranges of one another all the time, against sessions that come and go.
TEST(Recording, LosesNothingWhileThreadsEndEachOthersScopes) {
    constexpr int kRounds = 2000;
    kymo::Session session(kymo::SessionOptions{});
    std::atomic<kymo::Operation*> handed{nullptr};
    std::atomic<bool> done{false};
    std::thread ender([&] {
        while (!done.load() || handed.load() != nullptr) delete handed.exchange(nullptr);
    });
    for (int i = 0; i < kRounds; ++i) {
        auto* const operation = new kymo::Operation(kymo::Scope::User);
        operation->begin("handed on");
        { KYMO_RANGE("mine"); }
        for (kymo::Operation* none = nullptr; !handed.compare_exchange_weak(none, operation);) none = nullptr;
        if (i % 100 == 0) kymo::Session(kymo::SessionOptions{}).stop();
        { KYMO_RANGE("mine"); }
    }
    done.store(true);
    ender.join();
    const kymo::Trace trace = session.stop();
    EXPECT_EQ(names(trace).count("mine"), 2u * kRounds);
    EXPECT_EQ(names(trace).count("handed on"), std::size_t{kRounds});
    std::size_t unfinished = 0;
    for (const std::uint16_t flags : trace.ranges().flags) unfinished += (flags & kymo::kUnfinished) != 0;
    EXPECT_EQ(unfinished, 0u);
    EXPECT_TRUE(trace.problems().empty()) << trace.problems()[0].text;
}

TEST(Recording, TakesAScopeThatEndsOutOfOrderOutOfTheNesting) {
    using kymo::detail::ScopedRange;
    static kymo::detail::Site first{"first", __FILE__, __LINE__, kymo::Scope::User};
    static kymo::detail::Site second{"second", __FILE__, __LINE__, kymo::Scope::User};
    kymo::Session session(kymo::SessionOptions{});
    {
        KYMO_RANGE("around");
        auto a = std::make_unique<ScopedRange>(first, kymo::Scope::User);
        auto b = std::make_unique<ScopedRange>(second, kymo::Scope::User);
        { KYMO_RANGE("inside both"); }
        a.reset();
        { KYMO_RANGE("inside second"); }
    }
    const kymo::Trace trace = session.stop();
    EXPECT_TRUE(has_flag(trace, "first", kymo::kAsync));
    EXPECT_FALSE(has_flag(trace, "second", kymo::kAsync) && has_flag(trace, "around", kymo::kAsync));
    EXPECT_EQ(parent_name(trace, "inside second"), "second");
    EXPECT_EQ(parent_name(trace, "inside both"), "second");
    EXPECT_EQ(names(trace).size(), 5u);
}

// L8
TEST(Sessions, EachSeeTheirOwnWindowWhenTheyOverlapOnTwoThreads) {
    std::barrier step(2);
    kymo::Trace first;
    kymo::Trace second;
    std::thread a([&] {
        kymo::Session session(kymo::SessionOptions{});
        { KYMO_RANGE("a1"); }
        step.arrive_and_wait();  // 1
        step.arrive_and_wait();  // 2: the other has started
        { KYMO_RANGE("a2"); }
        first = session.stop();
        step.arrive_and_wait();  // 3
        { KYMO_RANGE("a3"); }
        step.arrive_and_wait();  // 4
    });
    std::thread b([&] {
        step.arrive_and_wait();  // 1
        kymo::Session session(kymo::SessionOptions{});
        { KYMO_RANGE("b1"); }
        step.arrive_and_wait();  // 2
        step.arrive_and_wait();  // 3: the first has stopped
        step.arrive_and_wait();  // 4
        second = session.stop();
    });
    a.join();
    b.join();
    EXPECT_EQ(names(first), (std::multiset<std::string>{"a1", "a2", "b1"}));
    EXPECT_EQ(names(second), (std::multiset<std::string>{"a2", "a3", "b1"}));
}

TEST(Sessions, AgreeOnARangeThatIsOpenAcrossStopAndStart) {
    kymo::Session first(kymo::SessionOptions{});
    kymo::Trace before;
    kymo::Trace after;
    {
        KYMO_RANGE("across", "n", 5);
        { KYMO_RANGE("during first"); }
        before = first.stop();
        { KYMO_RANGE("in between"); }
        kymo::Session second(kymo::SessionOptions{});
        { KYMO_RANGE("during second"); }
        after = second.snapshot();
        EXPECT_TRUE(has_flag(after, "across", kymo::kUnfinished));
        first = std::move(second);
    }
    { KYMO_RANGE("later"); }
    after = first.stop();
    EXPECT_EQ(names(before), (std::multiset<std::string>{"across", "during first"}));
    EXPECT_TRUE(has_flag(before, "across", kymo::kUnfinished));
    EXPECT_EQ(before.range_arguments(find(before, "across")).size(), 1u);
    EXPECT_EQ(parent_name(before, "during first"), "across");
    EXPECT_EQ(names(after), (std::multiset<std::string>{"across", "during second", "later"}));
    EXPECT_TRUE(has_flag(after, "across", kymo::kBeganBefore));
    EXPECT_FALSE(has_flag(after, "across", kymo::kUnfinished));
    EXPECT_EQ(parent_name(after, "during second"), "across");
    EXPECT_LT(after.ranges().start_ns[find(after, "across")], after.window().start_ns);
}

TEST(Sessions, GiveSnapshotsWhileRecordingGoesOn) {
    kymo::Session session(kymo::SessionOptions{});
    { KYMO_RANGE("one"); }
    const kymo::Trace early = session.snapshot();
    { KYMO_RANGE("two"); }
    EXPECT_EQ(names(early), (std::multiset<std::string>{"one"}));
    EXPECT_EQ(names(session.stop()), (std::multiset<std::string>{"one", "two"}));
}

// L7 L8
TEST(Sessions, MayBeStoppedTwiceDiscardedAndReused) {
    kymo::Session session;
    EXPECT_EQ(session.stop().ranges().size(), 0u);
    session.start();
    EXPECT_THROW(session.start(), kymo::Error);
    { KYMO_RANGE("kept"); }
    EXPECT_EQ(session.stop().ranges().size(), 1u);
    EXPECT_EQ(session.stop().ranges().size(), 1u);
    EXPECT_FALSE(session.is_running());
    session.start();
    { KYMO_RANGE("discarded"); }
    session.discard();
    session.discard();
    EXPECT_EQ(session.stop().ranges().size(), 0u);
}

TEST(Sessions, OfThisThreadSeeNoOther) {
    kymo::Session mine(kymo::SessionOptions{.threads = kymo::Threads::Tasks});
    kymo::Session all(kymo::SessionOptions{});
    { KYMO_RANGE("mine"); }
    std::thread([] { KYMO_RANGE("other"); }).join();
    EXPECT_EQ(names(mine.stop()), (std::multiset<std::string>{"mine"}));
    EXPECT_EQ(names(all.stop()), (std::multiset<std::string>{"mine", "other"}));
    std::thread([] { EXPECT_FALSE(kymo::is_recording()); }).join();
}

TEST(Sessions, OfThisThreadDoNotSwitchOthersOn) {
    kymo::Session mine(kymo::SessionOptions{.threads = kymo::Threads::Tasks});
    EXPECT_TRUE(kymo::is_recording());
    std::thread([] { EXPECT_FALSE(kymo::is_recording()); }).join();
}

TEST(Sessions, TenThousandInARowDoNotGrow) {
    const auto rounds = [](int count) {
        for (int i = 0; i < count; ++i) {
            kymo::Session session(kymo::SessionOptions{});
            { KYMO_RANGE("round", "i", i); }
            ASSERT_EQ(session.stop().ranges().size(), 1u);
        }
    };
    rounds(500);
    const std::size_t before = resident_bytes();
    rounds(10'000);
    if (kMemoryIsOurs) {
        EXPECT_LT(resident_bytes(), before + (8 << 20));
    }
}

TEST(Threads, ComeAndGoByTheThousand) {
    kymo::Session session(kymo::SessionOptions{});
    const std::size_t before = resident_bytes();
    for (int i = 0; i < 1000; ++i) std::thread([] { KYMO_RANGE("short life"); }).join();
    if (kMemoryIsOurs) {
        EXPECT_LT(resident_bytes(), before + (8 << 20));
    }
    const kymo::Trace trace = session.stop();
    EXPECT_EQ(names(trace).count("short life"), 1000u);
    std::set<std::uint32_t> ids;
    for (const kymo::ThreadInfo& thread : trace.threads()) {
        ids.insert(thread.id);
        EXPECT_GE(thread.id, 1u);
    }
    EXPECT_GE(ids.size(), 1000u);
    EXPECT_TRUE(trace.problems().empty()) << trace.problems()[0].text;
}

TEST(Threads, TwoHundredAtOnceAreAllSeen) {
    kymo::Session session(kymo::SessionOptions{});
    std::barrier everybody(200);
    std::vector<std::thread> threads;
    for (int i = 0; i < 200; ++i) {
        threads.emplace_back([&] {
            everybody.arrive_and_wait();
            for (int k = 0; k < 3000; ++k) {
                KYMO_RANGE("outer");
                KYMO_RANGE("inner");
            }
            everybody.arrive_and_wait();
        });
    }
    for (std::thread& thread : threads) thread.join();
    const kymo::Trace trace = session.stop();
    EXPECT_EQ(trace.ranges().size(), 200u * 6000u);
    EXPECT_EQ(trace.tracks().size(), 200u);
}

TEST(Threads, ThatRanBeforeTheSessionAreSeenToo) {
    std::barrier step(2);
    std::thread other([&] {
        step.arrive_and_wait();
        step.arrive_and_wait();
        { KYMO_RANGE("first ever"); }
        step.arrive_and_wait();
    });
    step.arrive_and_wait();
    kymo::Session session(kymo::SessionOptions{});
    step.arrive_and_wait();
    step.arrive_and_wait();
    EXPECT_EQ(names(session.stop()).count("first ever"), 1u);
    other.join();
}

void dig(int depth) {
    KYMO_RANGE("dig", "depth", depth);
    if (depth > 0) dig(depth - 1);
}

TEST(Threads, OpenStacksOfAnyDepthAreKept) {
    kymo::Session session(kymo::SessionOptions{});
    dig(5000);
    const kymo::Trace whole = session.stop();
    ASSERT_EQ(whole.ranges().size(), 5001u);
    EXPECT_EQ(whole.ranges().depth[5000], 5000u);
    EXPECT_TRUE(whole.problems().empty()) << whole.problems()[0].text;
}

TEST(Threads, DeepOpenStacksShowInASnapshot) {
    kymo::Session session(kymo::SessionOptions{});
    std::vector<std::unique_ptr<kymo::detail::ScopedRange>> open;
    for (int i = 0; i < 4000; ++i) {
        open.push_back(
            std::make_unique<kymo::detail::ScopedRange>("level " + std::to_string(i), kymo::Scope::User));
    }
    const kymo::Trace trace = session.snapshot();
    ASSERT_EQ(trace.ranges().size(), 4000u);
    EXPECT_EQ(trace.range_name(3999), "level 3999");
    EXPECT_EQ(trace.ranges().depth[3999], 3999u);
    while (!open.empty()) open.pop_back();
    EXPECT_EQ(session.stop().ranges().size(), 4000u);
}

TEST(Limits, StopKeepsTheBeginning) {
    kymo::Session session(kymo::SessionOptions{.max_bytes = 1 << 20, .policy = kymo::Policy::Stop});
    for (int i = 0; i < 200'000; ++i) {
        KYMO_RANGE_DYNAMIC(i == 0 ? "first" : "more");
    }
    EXPECT_FALSE(kymo::is_recording());
    const kymo::Trace trace = session.stop();
    EXPECT_TRUE(trace.window().ceiling_reached);
    EXPECT_EQ(names(trace).count("first"), 1u);
    EXPECT_LT(trace.ranges().size(), 70'000u);
    EXPECT_GT(trace.ranges().size(), 50'000u);
}

TEST(Limits, DropCountsWhatItLoses) {
    kymo::Session session(kymo::SessionOptions{.max_bytes = 1 << 20, .policy = kymo::Policy::Drop});
    for (int i = 0; i < 200'000; ++i) {
        KYMO_RANGE("more");
    }
    const kymo::Trace trace = session.stop();
    std::uint64_t dropped = 0;
    for (const kymo::ThreadInfo& thread : trace.threads()) dropped += thread.dropped;
    EXPECT_EQ(trace.ranges().size() + dropped, 200'000u);
    EXPECT_FALSE(trace.problems().empty());
}

TEST(Limits, RingKeepsTheEnd) {
    kymo::Session session(kymo::SessionOptions{.max_bytes = 1 << 20, .policy = kymo::Policy::Ring});
    for (int i = 0; i < 200'000; ++i) {
        KYMO_RANGE_DYNAMIC(i == 0 ? "first" : i == 199'999 ? "last" : "more");
    }
    const kymo::Trace trace = session.stop();
    EXPECT_EQ(names(trace).count("first"), 0u);
    EXPECT_EQ(names(trace).count("last"), 1u);
    EXPECT_LE(trace.ranges().size(), (1u << 20) / 16);
    EXPECT_GT(trace.ranges().size(), 50'000u);
    EXPECT_TRUE(trace.window().ceiling_reached);
}

TEST(Limits, OfOneSessionDoNotTouchAnother) {
    kymo::Session large(kymo::SessionOptions{});
    kymo::Session small(kymo::SessionOptions{.max_bytes = 1 << 20, .policy = kymo::Policy::Ring});
    for (int i = 0; i < 200'000; ++i) {
        KYMO_RANGE("more");
    }
    EXPECT_LT(small.stop().ranges().size(), 70'000u);
    EXPECT_EQ(large.stop().ranges().size(), 200'000u);
}

TEST(Limits, ACeilingTooSmallIsRaisedAndThatIsSaid) {
    kymo::Session session(kymo::SessionOptions{.max_bytes = 1000, .policy = kymo::Policy::Ring});
    { KYMO_RANGE("one"); }
    const kymo::Trace trace = session.stop();
    EXPECT_EQ(trace.ranges().size(), 1u);
    ASSERT_FALSE(trace.problems().empty());
    EXPECT_EQ(trace.problems()[0].code, "ceiling_raised");
}

std::atomic<int> handled{0};
void record_in_handler(int) {
    KYMO_RANGE("in a signal handler");
    handled.fetch_add(1);
}

TEST(Signals, HandlersMayRecordAnywhereWithoutHarm) {
    struct sigaction action {};
    action.sa_handler = record_in_handler;
    sigaction(SIGUSR1, &action, nullptr);
    kymo::Session session(kymo::SessionOptions{.max_bytes = 1 << 20, .policy = kymo::Policy::Ring});
    std::atomic<bool> done{false};
    std::thread victim([&] {
        record_in_handler(0);  // the first use of a site and of a thread allocates, which a handler must not
        while (!done.load(std::memory_order_relaxed)) {
            KYMO_RANGE("outer");
            KYMO_RANGE("inner", "n", 1);
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
    const kymo::Trace trace = session.stop();
    for (kymo::Row row = 0; row < trace.ranges().size(); ++row) {
        // A handler that lands while a range opens is inside by depth and before it by time: it goes to a
        // side track.
        if (trace.range_name(row) == "in a signal handler") continue;
        ASSERT_EQ(trace.ranges().flags[row] & kymo::kAsync, 0) << trace.range_name(row);
        if (trace.range_name(row) == "inner") {
            ASSERT_EQ(trace.range_name(trace.ranges().parent[row]), "outer")
                << "row " << row << " of " << trace.ranges().size() << " at " << trace.ranges().start_ns[row]
                << " of " << trace.window().end_ns << " ns, " << trace.problems().size() << " problems";
        }
    }
    for (const kymo::ThreadInfo& thread : trace.threads()) EXPECT_EQ(thread.resyncs, 0u);
}

TEST(CInterface, EndsTheBeginItBelongsToAcrossStartsAndStops) {
    const kymo_site outer = kymo_intern("c outer", __FILE__, __LINE__, KYMO_SCOPE_USER);
    const kymo_site inner = kymo_intern("c inner", nullptr, 0, KYMO_SCOPE_FUNCTION);
    kymo_begin(outer);  // off: not recorded, its end must not end anything else
    kymo::Session session(kymo::SessionOptions{});
    kymo_begin(inner);
    kymo_begin_named("c innermost");
    kymo_end();
    session.snapshot();
    kymo_end();
    kymo_end();  // of the one made while off
    { KYMO_RANGE("after"); }
    const kymo::Trace trace = session.stop();
    EXPECT_EQ(names(trace), (std::multiset<std::string>{"after", "c inner", "c innermost"}));
    EXPECT_EQ(parent_name(trace, "c innermost"), "c inner");
    EXPECT_EQ(parent_name(trace, "after"), "");
    EXPECT_TRUE(trace.problems().empty()) << trace.problems()[0].text;
}

TEST(CInterface, ResynchronisesOnASite) {
    kymo::Session session(kymo::SessionOptions{});
    const kymo_site outer = kymo_intern("outer", nullptr, 0, KYMO_SCOPE_USER);
    const kymo_site lost = kymo_intern("lost", nullptr, 0, KYMO_SCOPE_USER);
    kymo_begin(outer);
    kymo_begin(lost);
    kymo_end_site(outer);
    kymo_end();  // one too many
    { KYMO_RANGE("after"); }
    const kymo::Trace trace = session.stop();
    EXPECT_EQ(parent_name(trace, "lost"), "outer");
    EXPECT_TRUE(has_flag(trace, "lost", kymo::kEndInferred | kymo::kUnfinished));
    EXPECT_EQ(parent_name(trace, "after"), "");
    std::uint64_t resyncs = 0;
    for (const kymo::ThreadInfo& thread : trace.threads()) resyncs += thread.resyncs;
    EXPECT_EQ(resyncs, 2u);
}

TEST(CInterface, TheWriterTableFillsLogsThatAreNotThreads) {
    const kymo_writer* const writer = kymo_writer_table(KYMO_WRITER_VERSION);
    ASSERT_NE(writer, nullptr);
    EXPECT_EQ(kymo_writer_table(KYMO_WRITER_VERSION + 1), nullptr);
    kymo_log* const stream = writer->log_create("stream 7");
    const kymo_site site = writer->intern("kernel", nullptr, 0, 13);
    EXPECT_EQ(writer->range(stream, site, 1, 2, 0), 0);  // nothing records
    kymo::Session session(kymo::SessionOptions{});
    const std::uint64_t now = writer->now();
    EXPECT_EQ(writer->range(stream, site, now, now + 1000, 1), 1);
    EXPECT_EQ(writer->range(stream, site, now, now + 5000, 0), 1);
    EXPECT_EQ(writer->instant(stream, site, now + 6000), 1);
    EXPECT_EQ(writer->counter(stream, site, now + 7000, 2.5), 1);
    EXPECT_EQ(writer->blob(stream, site, now + 8000, 99, "abc", 3), 1);
    while (writer->now() < now + 10'000) {
    }
    const kymo::Trace trace = session.stop();
    ASSERT_EQ(trace.ranges().size(), 2u);
    EXPECT_EQ(trace.ranges().parent[1], 0u);
    EXPECT_EQ(trace.string(trace.threads()[trace.tracks()[0].thread].name), "stream 7");
    EXPECT_EQ(trace.threads()[trace.tracks()[0].thread].os_tid, 0);
    EXPECT_EQ(trace.instants().size(), 1u);
    EXPECT_EQ(trace.counters().value[0], 2.5);
    writer->log_close(stream);
}

TEST(Costs, AreMeasuredAndCarriedByTheTrace) {
    kymo::Session session(kymo::SessionOptions{});
    const kymo::Trace trace = session.stop();
    ASSERT_EQ(trace.costs().size(), 5u);
    EXPECT_EQ(trace.costs()[0].kind, "range");
    EXPECT_EQ(trace.costs()[4].kind, "allocation_report");
    for (const kymo::CostInfo& cost : trace.costs()) EXPECT_GT(cost.ns, 0);
}

}  // namespace
