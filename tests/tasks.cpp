// tasks.cpp: sessions of one thread and the tasks that it starts; asking which sessions see a thread.
#include <future>
#include <latch>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <kymo/c.h>
#include <kymo/kymo.h>

#include "thread_pool.h"

namespace {

inline constexpr kymo::ContextSlot<int> kRequest{"request"};

}  // namespace

// ---- sessions that follow tasks ----

// T6
// T9
TEST(TasksSessions, FollowThreadsAsyncAndPoolsAndNothingElse) {
    ThreadPool pool(2);
    kymo::Session all(kymo::SessionOptions{});
    kymo::Session mine(of_tasks());
    { KYMO_RANGE("own"); }
    std::thread(kymo::propagate([] { KYMO_RANGE("thread"); })).join();
    std::thread([] { KYMO_RANGE("foreign thread"); }).join();
    std::async(std::launch::async, kymo::propagate([] { KYMO_RANGE("async"); })).get();
    pool.post(kymo::propagate([] { KYMO_RANGE("pool"); })).get();
    for (int i = 0; i < 4; ++i) pool.post([] { KYMO_RANGE("foreign pool"); }).get();
    pool.post(kymo::propagate([&pool] {  // a task of a task
            KYMO_RANGE("task");
            return pool.post(kymo::propagate([] { KYMO_RANGE("task of a task"); }));
        }))
        .get()
        .get();
    const kymo::Trace trace = mine.stop();
    const Names own{"own", "thread", "async", "pool", "task", "task of a task"};
    EXPECT_EQ(names(trace), own);
    EXPECT_TRUE(trace.problems().empty());
    Names everything = own;
    everything.insert({"foreign thread", "foreign pool", "foreign pool", "foreign pool", "foreign pool"});
    EXPECT_EQ(names(all.stop()), everything);
}

TEST(TasksSessions, NoScopesMeanAll) {
    kymo::SessionOptions options = of_tasks();
    options.scopes = {};
    kymo::Session mine(options);
    { KYMO_RANGE("own"); }
    EXPECT_EQ(names(mine.stop()), Names{"own"});
}

TEST(TasksSessions, ArmAThreadOnlyWhileItIsInTheirContext) {
    kymo::Session mine(of_tasks());
    const kymo::Context context = kymo::Context::current();
    std::thread([&] {
        EXPECT_FALSE(kymo::is_recording());
        {
            const kymo::ContextAdoption adoption(context);
            EXPECT_TRUE(kymo::is_recording());
            const kymo::Context empty;
            const kymo::ContextAdoption nothing(empty);
            EXPECT_FALSE(kymo::is_recording());
            KYMO_RANGE("unseen");
        }
        EXPECT_FALSE(kymo::is_recording());
    }).join();
    {
        const kymo::Context empty;
        const kymo::ContextAdoption nothing(empty);
        KYMO_RANGE("elsewhere");  // the session's own thread, in another context
    }
    { KYMO_RANGE("back"); }
    EXPECT_EQ(names(mine.stop()), (Names{"back"}));
}

TEST(TasksSessions, LetGoOfAdoptingThreadsWhenTheyStop) {
    kymo::Session mine(of_tasks());
    const kymo::Context context = kymo::Context::current();
    std::latch adopted(1), stopped(1);
    std::thread worker([&] {
        const kymo::ContextAdoption adoption(context);
        { KYMO_RANGE("before"); }
        adopted.count_down();
        stopped.wait();
        EXPECT_FALSE(kymo::is_recording());
        const kymo::ContextAdoption again(context);
        EXPECT_FALSE(kymo::is_recording());
    });
    adopted.wait();
    const kymo::Trace trace = mine.stop();
    stopped.count_down();
    worker.join();
    EXPECT_EQ(names(trace), (Names{"before"}));
    EXPECT_FALSE(kymo::is_recording());
    EXPECT_TRUE(kymo::Context::current().is_empty());
}

TEST(TasksSessions, ShowWhatTheirTasksHaveOpenAtTheStop) {
    kymo::Session all(kymo::SessionOptions{});
    kymo::Session mine(of_tasks());
    std::latch open(2), done(1);
    std::thread task(kymo::propagate([&] {
        KYMO_RANGE("open in the task");
        open.count_down();
        done.wait();
    }));
    std::thread foreign([&] {
        KYMO_RANGE("open elsewhere");
        open.count_down();
        done.wait();
    });
    open.wait();
    EXPECT_EQ(names(mine.snapshot()), (Names{"open in the task"}));
    const kymo::Trace trace = mine.stop();
    const kymo::Trace everything = all.stop();
    done.count_down();
    task.join();
    foreign.join();
    EXPECT_EQ(names(trace), (Names{"open in the task"}));
    EXPECT_EQ(names(everything), (Names{"open in the task", "open elsewhere"}));
}

TEST(TasksSessions, KeepARangeThatEndsAfterItsContextWasLeft) {
    kymo::Session mine(of_tasks());
    const kymo::Context context = kymo::Context::current();
    kymo::Range handed("handed over");
    std::thread([&] {
        {
            const kymo::ContextAdoption adoption(context);
            kymo_begin_named("begun inside");
        }
        kymo_end();
        handed.end();
        { KYMO_RANGE("outside"); }
    }).join();
    const kymo::Trace trace = mine.stop();
    EXPECT_EQ(names(trace), (Names{"begun inside", "handed over"}));
    EXPECT_EQ(unfinished(trace), 0u);
}

// T6
TEST(TasksSessions, OfTwoThreadsAtOnceSeeEachItsOwn) {
    std::latch both(2), recorded(2);
    const auto run = [&](const std::string& name) {
        kymo::Session mine(of_tasks());
        both.arrive_and_wait();
        for (int i = 0; i < 100; ++i) {
            { KYMO_RANGE_DYNAMIC(name); }
            std::thread(kymo::propagate([&] { KYMO_RANGE_DYNAMIC(name); })).join();
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
TEST(TasksSessions, SeeAlsoWhatAnInnerOneRecords) {
    kymo::Session outer(of_tasks());
    { KYMO_RANGE("before"); }
    kymo::Session inner(of_tasks());
    { KYMO_RANGE("within"); }
    std::thread(kymo::propagate([] { KYMO_RANGE("task within"); })).join();
    EXPECT_EQ(names(inner.stop()), (Names{"within", "task within"}));
    { KYMO_RANGE("after"); }
    std::thread(kymo::propagate([] { KYMO_RANGE("task after"); })).join();
    EXPECT_EQ(names(outer.stop()), (Names{"before", "within", "task within", "after", "task after"}));
}

// T12
// T13
TEST(TasksSessions, AreStoppedThroughTheirOwnHandles) {
    kymo::Session all(kymo::SessionOptions{});
    kymo::Session second(kymo::SessionOptions{});  // T12: no slot that only one can have
    kymo::Session mine(of_tasks());
    { KYMO_RANGE("one"); }
    EXPECT_EQ(names(mine.stop()), (Names{"one"}));
    EXPECT_TRUE(all.is_running());
    EXPECT_TRUE(kymo::is_recording());
    { KYMO_RANGE("two"); }
    EXPECT_EQ(names(all.stop()), (Names{"one", "two"}));
    { KYMO_RANGE("three"); }
    EXPECT_EQ(names(second.stop()), (Names{"one", "two", "three"}));
}

// T4
// T13
TEST(TasksSessions, MayStopInAnyOrderInsideForeignGuardsAndOnAnyThread) {
    auto outer = std::make_unique<kymo::Session>(of_tasks());
    const kymo::ContextGuard guard(kRequest, 1);
    auto inner = std::make_unique<kymo::Session>(of_tasks());
    { KYMO_RANGE("both"); }
    EXPECT_EQ(names(outer->stop()), (Names{"both"}));
    { KYMO_RANGE("inner"); }
    Names seen;
    std::thread([&] { seen = names(inner->stop()); }).join();
    EXPECT_EQ(seen, (Names{"both", "inner"}));
    EXPECT_FALSE(kymo::is_recording());
    EXPECT_EQ(*kymo::context_value(kRequest), 1);
}

TEST(TasksSessions, StartedInATaskEndWithItsContext) {
    kymo::Session mine(of_tasks());
    kymo::Session started;
    std::thread(kymo::propagate([&] {
        const kymo::Context context = kymo::Context::current();
        {
            const kymo::ContextAdoption adoption(context);
            started.start(of_tasks());
            KYMO_RANGE("inner task");
        }
        KYMO_RANGE("outer task");
    })).join();
    EXPECT_EQ(names(started.stop()), (Names{"inner task"}));
    EXPECT_EQ(names(mine.stop()), (Names{"inner task", "outer task"}));
}

// T10
TEST(TasksSessions, AreAdoptedByManyThreadsWhileOthersStartAndStop) {
    kymo::Session all(kymo::SessionOptions{.max_bytes = 16 << 20, .policy = kymo::Policy::Ring});
    constexpr int kRounds = 200;
    const auto run = [&] {
        for (int i = 0; i < kRounds; ++i) {
            kymo::Session mine(of_tasks());
            const kymo::Context context = kymo::Context::current();
            std::thread other([&] {
                for (int j = 0; j < 20; ++j) {
                    const kymo::ContextAdoption adoption(context);
                    KYMO_RANGE("adopted");
                }
            });
            { KYMO_RANGE("own"); }
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

// ---- asking ----

// T11
TEST(Asking, SeesSessionsOfBothKinds) {
    EXPECT_FALSE(kymo::is_recording());
    EXPECT_FALSE(kymo::inputs_wanted());
    EXPECT_TRUE(kymo::active_options().scopes.empty());
    {
        kymo::Session all(kymo::SessionOptions{.record_shapes = true});
        std::thread([] {
            EXPECT_TRUE(kymo::is_recording());
            EXPECT_TRUE(kymo::inputs_wanted());
            EXPECT_TRUE(kymo::active_options().record_shapes);
        }).join();
        EXPECT_EQ(kymo::active_options().threads, kymo::Threads::All);
    }
    kymo::Session mine(kymo::SessionOptions{.threads = kymo::Threads::Tasks,
                                            .scopes = {kymo::Scope::User},
                                            .record_values = false,
                                            .concrete_inputs = true});
    EXPECT_TRUE(kymo::inputs_wanted());
    const kymo::SessionOptions active = kymo::active_options();
    EXPECT_TRUE(active.concrete_inputs);
    EXPECT_FALSE(active.record_shapes);
    EXPECT_FALSE(active.record_values);
    EXPECT_EQ(active.scopes, kymo::ScopeSet{kymo::Scope::User});
    EXPECT_EQ(active.threads, kymo::Threads::Tasks);
    std::thread([] {
        EXPECT_FALSE(kymo::inputs_wanted());
        EXPECT_FALSE(kymo::active_options().concrete_inputs);
    }).join();
    std::thread(kymo::propagate([] {
        EXPECT_TRUE(kymo::inputs_wanted());
        EXPECT_TRUE(kymo::active_options().concrete_inputs);
    })).join();
}
