// tasks.cpp: sessions of one thread and the tasks that it starts; querying which sessions see a thread.
#include <future>
#include <latch>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <marey/all.h>
#include <marey/c.h>

#include "support/thread_pool.h"

namespace {

inline constexpr marey::ContextSlot<int> kRequest{"request"};

}  // namespace

// ---- sessions that follow tasks ----

// T6
// T9
TEST(TasksSessions, FollowThreadsAsyncAndPoolsAndNothingElse) {
    ThreadPool pool(2);
    marey::Session all(marey::SessionOptions{});
    marey::Session mine(task_options());
    { MAREY_RANGE("own"); }
    std::thread(marey::propagate([] { MAREY_RANGE("thread"); })).join();
    std::thread([] { MAREY_RANGE("foreign thread"); }).join();
    std::async(std::launch::async, marey::propagate([] { MAREY_RANGE("async"); })).get();
    pool.post(marey::propagate([] { MAREY_RANGE("pool"); })).get();
    for (int i = 0; i < 4; ++i) pool.post([] { MAREY_RANGE("foreign pool"); }).get();
    pool.post(marey::propagate([&pool] {  // a task of a task
            MAREY_RANGE("task");
            return pool.post(marey::propagate([] { MAREY_RANGE("task of a task"); }));
        }))
        .get()
        .get();
    const marey::Trace trace = mine.stop();
    const Names own{"own", "thread", "async", "pool", "task", "task of a task"};
    EXPECT_EQ(names(trace), own);
    EXPECT_TRUE(trace.problems().empty());
    Names everything = own;
    everything.insert({"foreign thread", "foreign pool", "foreign pool", "foreign pool", "foreign pool"});
    EXPECT_EQ(names(all.stop()), everything);
}

TEST(TasksSessions, AnEmptyScopeSetMeansAll) {
    marey::SessionOptions options = task_options();
    options.scopes = {};
    marey::Session mine(options);
    { MAREY_RANGE("own"); }
    EXPECT_EQ(names(mine.stop()), Names{"own"});
}

TEST(TasksSessions, ArmAThreadOnlyWhileItIsInTheirContext) {
    marey::Session mine(task_options());
    const marey::Context context = marey::Context::current();
    std::thread([&] {
        EXPECT_FALSE(marey::is_recording());
        {
            const marey::ContextAdoption adoption(context);
            EXPECT_TRUE(marey::is_recording());
            const marey::Context empty;
            const marey::ContextAdoption nothing(empty);
            EXPECT_FALSE(marey::is_recording());
            MAREY_RANGE("unseen");
        }
        EXPECT_FALSE(marey::is_recording());
    }).join();
    {
        const marey::Context empty;
        const marey::ContextAdoption nothing(empty);
        MAREY_RANGE("elsewhere");  // the session's own thread, in another context
    }
    { MAREY_RANGE("back"); }
    EXPECT_EQ(names(mine.stop()), (Names{"back"}));
}

TEST(TasksSessions, ReleaseAdoptingThreadsWhenTheyStop) {
    marey::Session mine(task_options());
    const marey::Context context = marey::Context::current();
    std::latch adopted(1), stopped(1);
    std::thread worker([&] {
        const marey::ContextAdoption adoption(context);
        { MAREY_RANGE("before"); }
        adopted.count_down();
        stopped.wait();
        EXPECT_FALSE(marey::is_recording());
        const marey::ContextAdoption again(context);
        EXPECT_FALSE(marey::is_recording());
    });
    adopted.wait();
    const marey::Trace trace = mine.stop();
    stopped.count_down();
    worker.join();
    EXPECT_EQ(names(trace), (Names{"before"}));
    EXPECT_FALSE(marey::is_recording());
    EXPECT_TRUE(marey::Context::current().is_empty());
}

TEST(TasksSessions, ShowTheOpenRangesOfTheirTasksAtTheStop) {
    marey::Session all(marey::SessionOptions{});
    marey::Session mine(task_options());
    std::latch open(2), done(1);
    std::thread task(marey::propagate([&] {
        MAREY_RANGE("open in the task");
        open.count_down();
        done.wait();
    }));
    std::thread foreign([&] {
        MAREY_RANGE("open elsewhere");
        open.count_down();
        done.wait();
    });
    open.wait();
    EXPECT_EQ(names(mine.snapshot()), (Names{"open in the task"}));
    const marey::Trace trace = mine.stop();
    const marey::Trace everything = all.stop();
    done.count_down();
    task.join();
    foreign.join();
    EXPECT_EQ(names(trace), (Names{"open in the task"}));
    EXPECT_EQ(names(everything), (Names{"open in the task", "open elsewhere"}));
}

TEST(TasksSessions, KeepARangeThatEndsAfterItsContextWasLeft) {
    marey::Session mine(task_options());
    const marey::Context context = marey::Context::current();
    marey::Range handed("handed over");
    std::thread([&] {
        {
            const marey::ContextAdoption adoption(context);
            marey_begin_named("begun inside");
        }
        marey_end();
        handed.end();
        { MAREY_RANGE("outside"); }
    }).join();
    const marey::Trace trace = mine.stop();
    EXPECT_EQ(names(trace), (Names{"begun inside", "handed over"}));
    EXPECT_EQ(unfinished(trace), 0u);
}

// T6
TEST(TasksSessions, OfTwoThreadsAtOnceEachSeeTheirOwn) {
    std::latch both(2), recorded(2);
    const auto run = [&](const std::string& name) {
        marey::Session mine(task_options());
        both.arrive_and_wait();
        for (int i = 0; i < 100; ++i) {
            { MAREY_RANGE_DYNAMIC(name); }
            std::thread(marey::propagate([&] { MAREY_RANGE_DYNAMIC(name); })).join();
        }
        recorded.arrive_and_wait();
        return names(mine.stop());
    };
    auto one = std::async(std::launch::async, run, "one");
    auto two = std::async(std::launch::async, run, "two");
    const Names of_one = one.get();
    const Names of_two = two.get();
    EXPECT_EQ(of_one.size(), 200u);
    EXPECT_EQ(of_one.count("one"), 200u);
    EXPECT_EQ(of_two.size(), 200u);
    EXPECT_EQ(of_two.count("two"), 200u);
}

// T6
TEST(TasksSessions, AlsoSeeTheRangesOfAnInnerSession) {
    marey::Session outer(task_options());
    { MAREY_RANGE("before"); }
    marey::Session inner(task_options());
    { MAREY_RANGE("within"); }
    std::thread(marey::propagate([] { MAREY_RANGE("task within"); })).join();
    EXPECT_EQ(names(inner.stop()), (Names{"within", "task within"}));
    { MAREY_RANGE("after"); }
    std::thread(marey::propagate([] { MAREY_RANGE("task after"); })).join();
    EXPECT_EQ(names(outer.stop()), (Names{"before", "within", "task within", "after", "task after"}));
}

// T12
// T13
TEST(TasksSessions, AreStoppedThroughTheirOwnHandles) {
    marey::Session all(marey::SessionOptions{});
    marey::Session second(marey::SessionOptions{});  // T12: there is no exclusive slot
    marey::Session mine(task_options());
    { MAREY_RANGE("one"); }
    EXPECT_EQ(names(mine.stop()), (Names{"one"}));
    EXPECT_TRUE(all.is_running());
    EXPECT_TRUE(marey::is_recording());
    { MAREY_RANGE("two"); }
    EXPECT_EQ(names(all.stop()), (Names{"one", "two"}));
    { MAREY_RANGE("three"); }
    EXPECT_EQ(names(second.stop()), (Names{"one", "two", "three"}));
}

// T4
// T13
TEST(TasksSessions, MayStopInAnyOrderInsideForeignGuardsAndOnAnyThread) {
    auto outer = std::make_unique<marey::Session>(task_options());
    const marey::ContextGuard guard(kRequest, 1);
    auto inner = std::make_unique<marey::Session>(task_options());
    { MAREY_RANGE("both"); }
    EXPECT_EQ(names(outer->stop()), (Names{"both"}));
    { MAREY_RANGE("inner"); }
    Names seen;
    std::thread([&] { seen = names(inner->stop()); }).join();
    EXPECT_EQ(seen, (Names{"both", "inner"}));
    EXPECT_FALSE(marey::is_recording());
    EXPECT_EQ(*marey::context_value(kRequest), 1);
}

TEST(TasksSessions, StartedInATaskEndWithItsContext) {
    marey::Session mine(task_options());
    marey::Session started;
    std::thread(marey::propagate([&] {
        const marey::Context context = marey::Context::current();
        {
            const marey::ContextAdoption adoption(context);
            started.start(task_options());
            MAREY_RANGE("inner task");
        }
        MAREY_RANGE("outer task");
    })).join();
    EXPECT_EQ(names(started.stop()), (Names{"inner task"}));
    EXPECT_EQ(names(mine.stop()), (Names{"inner task", "outer task"}));
}

// T10
TEST(TasksSessions, AreAdoptedByManyThreadsWhileOthersStartAndStop) {
    marey::Session all(marey::SessionOptions{.max_bytes = 16 << 20, .policy = marey::Policy::Ring});
    constexpr int kRounds = 200;
    const auto run = [&] {
        for (int i = 0; i < kRounds; ++i) {
            marey::Session mine(task_options());
            const marey::Context context = marey::Context::current();
            std::thread other([&] {
                for (int j = 0; j < 20; ++j) {
                    const marey::ContextAdoption adoption(context);
                    MAREY_RANGE("adopted");
                }
            });
            { MAREY_RANGE("own"); }
            other.join();
            const Names seen = names(mine.stop());
            ASSERT_EQ(seen.count("adopted"), 20u);
            ASSERT_EQ(seen.size(), 21u);
        }
    };
    std::thread one(run), two(run);
    one.join();
    two.join();
}

// ---- queries ----

// T11
TEST(Asking, SeesSessionsOfBothKinds) {
    EXPECT_FALSE(marey::is_recording());
    EXPECT_FALSE(marey::needs_inputs());
    EXPECT_TRUE(marey::active_options().scopes.empty());
    {
        marey::Session all(marey::SessionOptions{.record_shapes = true});
        std::thread([] {
            EXPECT_TRUE(marey::is_recording());
            EXPECT_TRUE(marey::needs_inputs());
            EXPECT_TRUE(marey::active_options().record_shapes);
        }).join();
        EXPECT_EQ(marey::active_options().threads, marey::Threads::All);
    }
    marey::Session mine(marey::SessionOptions{.threads = marey::Threads::Tasks,
                                              .scopes = {marey::Scope::User},
                                              .record_values = false,
                                              .concrete_inputs = true});
    EXPECT_TRUE(marey::needs_inputs());
    const marey::SessionOptions active = marey::active_options();
    EXPECT_TRUE(active.concrete_inputs);
    EXPECT_FALSE(active.record_shapes);
    EXPECT_FALSE(active.record_values);
    EXPECT_EQ(active.scopes, marey::ScopeSet{marey::Scope::User});
    EXPECT_EQ(active.threads, marey::Threads::Tasks);
    std::thread([] {
        EXPECT_FALSE(marey::needs_inputs());
        EXPECT_FALSE(marey::active_options().concrete_inputs);
    }).join();
    std::thread(marey::propagate([] {
        EXPECT_TRUE(marey::needs_inputs());
        EXPECT_TRUE(marey::active_options().concrete_inputs);
    })).join();
}
