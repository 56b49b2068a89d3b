// sessions.cpp: sessions that overlap, follow one another or have limits, and the threads that they see.
#include <barrier>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <marey/all.h>

#include "support/child_run.h"
#include "support/memory_use.h"
#include "support/range_lookup.h"

namespace {

// L8
TEST(Sessions, EachShowTheirOwnWindowWhenTheyOverlapOnTwoThreads) {
    std::barrier step(2);
    marey::Trace first;
    marey::Trace second;
    std::thread a([&] {
        marey::Session session(marey::SessionOptions{});
        { MAREY_RANGE("a1"); }
        step.arrive_and_wait();  // 1
        step.arrive_and_wait();  // 2: the other has started
        { MAREY_RANGE("a2"); }
        first = session.stop();
        step.arrive_and_wait();  // 3
        { MAREY_RANGE("a3"); }
        step.arrive_and_wait();  // 4
    });
    std::thread b([&] {
        step.arrive_and_wait();  // 1
        marey::Session session(marey::SessionOptions{});
        { MAREY_RANGE("b1"); }
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
    marey::Session first(marey::SessionOptions{});
    marey::Trace before;
    marey::Trace after;
    {
        MAREY_RANGE("across", "n", 5);
        { MAREY_RANGE("during first"); }
        before = first.stop();
        { MAREY_RANGE("in between"); }
        marey::Session second(marey::SessionOptions{});
        { MAREY_RANGE("during second"); }
        after = second.snapshot();
        EXPECT_TRUE(has_flag(after, "across", marey::kUnfinished));
        first = std::move(second);
    }
    { MAREY_RANGE("later"); }
    after = first.stop();
    EXPECT_EQ(names(before), (std::multiset<std::string>{"across", "during first"}));
    EXPECT_TRUE(has_flag(before, "across", marey::kUnfinished));
    EXPECT_EQ(before.range_arguments(find(before, "across")).size(), 1u);
    EXPECT_EQ(parent_name(before, "during first"), "across");
    EXPECT_EQ(names(after), (std::multiset<std::string>{"across", "during second", "later"}));
    EXPECT_TRUE(has_flag(after, "across", marey::kBeganBefore));
    EXPECT_FALSE(has_flag(after, "across", marey::kUnfinished));
    EXPECT_EQ(parent_name(after, "during second"), "across");
    EXPECT_LT(after.ranges().start_ns[find(after, "across")], after.window().start_ns);
}

TEST(Sessions, GiveSnapshotsWhileRecordingContinues) {
    marey::Session session(marey::SessionOptions{});
    { MAREY_RANGE("one"); }
    const marey::Trace early = session.snapshot();
    { MAREY_RANGE("two"); }
    EXPECT_EQ(names(early), (std::multiset<std::string>{"one"}));
    EXPECT_EQ(names(session.stop()), (std::multiset<std::string>{"one", "two"}));
}

// L7 L8
TEST(Sessions, MayBeStoppedTwiceDiscardedAndReused) {
    marey::Session session;
    EXPECT_EQ(session.stop().ranges().size(), 0u);
    session.start();
    EXPECT_THROW(session.start(), marey::Error);
    { MAREY_RANGE("kept"); }
    EXPECT_EQ(session.stop().ranges().size(), 1u);
    EXPECT_EQ(session.stop().ranges().size(), 1u);
    EXPECT_FALSE(session.is_running());
    session.start();
    { MAREY_RANGE("discarded"); }
    session.discard();
    session.discard();
    EXPECT_EQ(session.stop().ranges().size(), 0u);
}

TEST(Sessions, OfThisThreadSeeNoOtherThread) {
    marey::Session mine(marey::SessionOptions{.threads = marey::Threads::Tasks});
    marey::Session all(marey::SessionOptions{});
    { MAREY_RANGE("mine"); }
    std::thread([] { MAREY_RANGE("other"); }).join();
    EXPECT_EQ(names(mine.stop()), (std::multiset<std::string>{"mine"}));
    EXPECT_EQ(names(all.stop()), (std::multiset<std::string>{"mine", "other"}));
    std::thread([] { EXPECT_FALSE(marey::is_recording()); }).join();
}

TEST(Sessions, OfThisThreadDoNotSwitchOthersOn) {
    marey::Session mine(marey::SessionOptions{.threads = marey::Threads::Tasks});
    EXPECT_TRUE(marey::is_recording());
    std::thread([] { EXPECT_FALSE(marey::is_recording()); }).join();
}

TEST(Sessions, TenThousandInARowDoNotGrowMemory) {
    const auto rounds = [](int count) {
        for (int i = 0; i < count; ++i) {
            marey::Session session(marey::SessionOptions{});
            { MAREY_RANGE("round", "i", i); }
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
    marey::Session session(marey::SessionOptions{});
    const std::size_t before = resident_bytes();
    for (int i = 0; i < 1000; ++i) std::thread([] { MAREY_RANGE("short life"); }).join();
    if (kMemoryIsOurs) {
        EXPECT_LT(resident_bytes(), before + (8 << 20));
    }
    const marey::Trace trace = session.stop();
    EXPECT_EQ(names(trace).count("short life"), 1000u);
    std::set<std::uint32_t> ids;
    for (const marey::ThreadInfo& thread : trace.threads()) {
        ids.insert(thread.id);
        EXPECT_GE(thread.id, 1u);
    }
    EXPECT_GE(ids.size(), 1000u);
    EXPECT_TRUE(trace.problems().empty()) << trace.problems()[0].text;
}

TEST(Threads, TwoHundredAtOnceAreAllSeen) {
    marey::Session session(marey::SessionOptions{});
    std::barrier everybody(200);
    std::vector<std::thread> threads;
    for (int i = 0; i < 200; ++i) {
        threads.emplace_back([&] {
            everybody.arrive_and_wait();
            for (int k = 0; k < 3000; ++k) {
                MAREY_RANGE("outer");
                MAREY_RANGE("inner");
            }
            everybody.arrive_and_wait();
        });
    }
    for (std::thread& thread : threads) thread.join();
    const marey::Trace trace = session.stop();
    EXPECT_EQ(trace.ranges().size(), 200u * 6000u);
    EXPECT_EQ(trace.tracks().size(), 200u);
}

TEST(Threads, ThatRanBeforeTheSessionAreSeenToo) {
    std::barrier step(2);
    std::thread other([&] {
        step.arrive_and_wait();
        step.arrive_and_wait();
        { MAREY_RANGE("first ever"); }
        step.arrive_and_wait();
    });
    step.arrive_and_wait();
    marey::Session session(marey::SessionOptions{});
    step.arrive_and_wait();
    step.arrive_and_wait();
    EXPECT_EQ(names(session.stop()).count("first ever"), 1u);
    other.join();
}

void dig(int depth) {
    MAREY_RANGE("dig", "depth", depth);
    if (depth > 0) dig(depth - 1);
}

TEST(Threads, OpenStacksOfAnyDepthAreKept) {
    marey::Session session(marey::SessionOptions{});
    dig(5000);
    const marey::Trace whole = session.stop();
    ASSERT_EQ(whole.ranges().size(), 5001u);
    EXPECT_EQ(whole.ranges().depth[5000], 5000u);
    EXPECT_TRUE(whole.problems().empty()) << whole.problems()[0].text;
}

TEST(Threads, DeepOpenStacksShowInASnapshot) {
    marey::Session session(marey::SessionOptions{});
    std::vector<std::unique_ptr<marey::detail::ScopedRange>> open;
    for (int i = 0; i < 4000; ++i) {
        open.push_back(
            std::make_unique<marey::detail::ScopedRange>("level " + std::to_string(i), marey::Scope::User));
    }
    const marey::Trace trace = session.snapshot();
    ASSERT_EQ(trace.ranges().size(), 4000u);
    EXPECT_EQ(trace.range_name(3999), "level 3999");
    EXPECT_EQ(trace.ranges().depth[3999], 3999u);
    while (!open.empty()) open.pop_back();
    EXPECT_EQ(session.stop().ranges().size(), 4000u);
}

TEST(Limits, StopKeepsTheBeginning) {
    marey::Session session(marey::SessionOptions{.max_bytes = 1 << 20, .policy = marey::Policy::Stop});
    for (int i = 0; i < 200'000; ++i) {
        MAREY_RANGE_DYNAMIC(i == 0 ? "first" : "more");
    }
    EXPECT_FALSE(marey::is_recording());
    const marey::Trace trace = session.stop();
    EXPECT_TRUE(trace.window().size_limit_reached);
    EXPECT_EQ(names(trace).count("first"), 1u);
    EXPECT_LT(trace.ranges().size(), 70'000u);
    EXPECT_GT(trace.ranges().size(), 50'000u);
}

TEST(Limits, DropCountsTheLostRecords) {
    marey::Session session(marey::SessionOptions{.max_bytes = 1 << 20, .policy = marey::Policy::Drop});
    for (int i = 0; i < 200'000; ++i) {
        MAREY_RANGE("more");
    }
    const marey::Trace trace = session.stop();
    std::uint64_t dropped = 0;
    for (const marey::ThreadInfo& thread : trace.threads()) dropped += thread.dropped;
    EXPECT_EQ(trace.ranges().size() + dropped, 200'000u);
    EXPECT_FALSE(trace.problems().empty());
}

TEST(Limits, RingKeepsTheEnd) {
    marey::Session session(marey::SessionOptions{.max_bytes = 1 << 20, .policy = marey::Policy::Ring});
    for (int i = 0; i < 200'000; ++i) {
        MAREY_RANGE_DYNAMIC(i == 0 ? "first" : i == 199'999 ? "last" : "more");
    }
    const marey::Trace trace = session.stop();
    EXPECT_EQ(names(trace).count("first"), 0u);
    EXPECT_EQ(names(trace).count("last"), 1u);
    EXPECT_LE(trace.ranges().size(), (1u << 20) / 16);
    EXPECT_GT(trace.ranges().size(), 50'000u);
    EXPECT_TRUE(trace.window().size_limit_reached);
}

TEST(Limits, OfOneSessionDoNotTouchAnother) {
    marey::Session large(marey::SessionOptions{});
    marey::Session small(marey::SessionOptions{.max_bytes = 1 << 20, .policy = marey::Policy::Ring});
    for (int i = 0; i < 200'000; ++i) {
        MAREY_RANGE("more");
    }
    const marey::Trace of_small = small.stop();
    EXPECT_LT(of_small.ranges().size(), 70'000u);
    EXPECT_TRUE(child_run::has_problem(of_small, "overwritten"));
    const marey::Trace of_large = large.stop();
    EXPECT_EQ(of_large.ranges().size(), 200'000u);
    EXPECT_FALSE(child_run::has_problem(of_large, "overwritten"));
}

TEST(Limits, ATooSmallLimitIsRaisedAndThatIsReported) {
    marey::Session session(marey::SessionOptions{.max_bytes = 1000, .policy = marey::Policy::Ring});
    { MAREY_RANGE("one"); }
    const marey::Trace trace = session.stop();
    EXPECT_EQ(trace.ranges().size(), 1u);
    ASSERT_FALSE(trace.problems().empty());
    EXPECT_EQ(trace.problems()[0].code, "size_limit_raised");
}

}  // namespace
