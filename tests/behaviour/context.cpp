// context.cpp: contexts: slots and guards, adoption, propagation, continuations.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <marey/all.h>
#include <marey/c.h>

#include "support/thread_pool.h"

#if defined(__SANITIZE_THREAD__)
// The child of a fork starts a thread here (the recorder's), which works.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() {
    return "die_after_fork=0";
}
#endif

namespace {

inline constexpr marey::ContextSlot<std::string> kProducer{"producer"};
inline constexpr marey::ContextSlot<int> kRequest{"request"};
inline constexpr marey::ContextSlot<int> kOther{"request"};  // a slot is its address, not its name

std::string producer() {
    const std::string* const value = marey::context_value(kProducer);
    return value != nullptr ? *value : "none";
}

}  // namespace

// ---- slots ----

// T1
// T3
TEST(ContextSlots, GiveTheInnermostValueOfTheirKindOrNone) {
    EXPECT_EQ(marey::context_value(kRequest), nullptr);
    const marey::ContextGuard outer(kRequest, 1);
    const marey::ContextGuard producer_guard(kProducer, std::string("loader"));
    {
        const marey::ContextGuard inner(kRequest, 2);
        EXPECT_EQ(*marey::context_value(kRequest), 2);
        EXPECT_EQ(producer(), "loader");
    }
    EXPECT_EQ(*marey::context_value(kRequest), 1);
}

// T2
TEST(ContextSlots, AreIdentifiedByTheirAddressSoThatAnyLibraryAddsItsOwn) {
    const marey::ContextGuard guard(kRequest, 1);
    EXPECT_EQ(marey::context_value(kOther), nullptr);
    static constexpr marey::ContextSlot<int> kLocal{"local"};
    const marey::ContextGuard local(kLocal, 3);
    EXPECT_EQ(*marey::context_value(kLocal), 3);
    EXPECT_STREQ(kLocal.name(), "local");
}

// T5
TEST(ContextGuards, RestoreTheEarlierValueAndDoNothingForNull) {
    const auto shared = std::make_shared<const int>(7);
    {
        const marey::ContextGuard<int> guard(kRequest, shared);
        EXPECT_EQ(marey::context_value(kRequest), shared.get());
        const marey::ContextGuard<int> nothing(kRequest, std::shared_ptr<const int>());
        EXPECT_EQ(marey::context_value(kRequest), shared.get());
    }
    EXPECT_EQ(marey::context_value(kRequest), nullptr);
    EXPECT_EQ(shared.use_count(), 1);
}

// T4
TEST(ContextGuards, ThatEndOutOfOrderRemoveTheirOwnValueOnly) {
    auto first = std::make_unique<marey::ContextGuard<int>>(kRequest, 1);
    auto second = std::make_unique<marey::ContextGuard<std::string>>(kProducer, std::string("second"));
    auto third = std::make_unique<marey::ContextGuard<int>>(kRequest, 3);
    const marey::Context captured = marey::Context::current();
    first.reset();
    EXPECT_EQ(*marey::context_value(kRequest), 3);
    second.reset();
    EXPECT_EQ(producer(), "none");
    EXPECT_EQ(*marey::context_value(kRequest), 3);
    const marey::Context later = marey::Context::current();
    EXPECT_EQ(later.value(kProducer), nullptr);
    EXPECT_EQ(*later.value(kRequest), 3);
    third.reset();
    EXPECT_EQ(marey::context_value(kRequest), nullptr);
    EXPECT_EQ(*captured.value(kProducer), "second");  // the captured context is unchanged
}

// T4
TEST(ContextGuards, MayEndInsideOrOutliveAnAdoption) {
    const marey::Context empty;
    auto before = std::make_unique<marey::ContextGuard<int>>(kRequest, 1);
    const marey::ContextGuard stays(kProducer, std::string("stays"));
    std::unique_ptr<marey::ContextGuard<int>> inside;
    {
        const marey::ContextAdoption adoption(empty);
        EXPECT_EQ(marey::context_value(kRequest), nullptr);
        inside = std::make_unique<marey::ContextGuard<int>>(kRequest, 2);
        before.reset();
        EXPECT_EQ(*marey::context_value(kRequest), 2);
    }
    EXPECT_EQ(marey::context_value(kRequest), nullptr);
    EXPECT_EQ(producer(), "stays");
    inside.reset();
    EXPECT_EQ(producer(), "stays");
}

TEST(ContextGuards, AreCapturedByTheHundredThousand) {
    std::vector<std::unique_ptr<marey::ContextGuard<int>>> guards;
    for (int i = 0; i < 100'000; ++i)
        guards.push_back(std::make_unique<marey::ContextGuard<int>>(kRequest, i));
    marey::Context context = marey::Context::current();
    while (!guards.empty()) guards.pop_back();
    EXPECT_EQ(*context.value(kRequest), 99'999);
    context = marey::Context();  // the list is freed without recursion
}

// ---- adopting ----

// T5
TEST(Contexts, AreAdoptedByAnotherThreadAndLeftAgain) {
    marey::Context context;
    {
        const marey::ContextGuard guard(kProducer, std::string("main"));
        context = marey::Context::current();
    }
    std::thread([&] {
        const marey::ContextGuard own(kProducer, std::string("own"));
        {
            const marey::ContextAdoption adoption(context);
            EXPECT_EQ(producer(), "main");
            const marey::ContextGuard deeper(kRequest, 5);
            const marey::Context inner = marey::Context::current();
            EXPECT_EQ(*inner.value(kProducer), "main");
            EXPECT_EQ(*inner.value(kRequest), 5);
        }
        EXPECT_EQ(producer(), "own");
        EXPECT_EQ(marey::context_value(kRequest), nullptr);
    }).join();
}

// T7
// R27
// R69
TEST(Contexts, CarryAThreadsObserversAndItsSwitch) {
    using Seen = std::vector<std::string>;
    const auto noting = [](Seen& seen) {
        return marey::Observer{.start = [](const marey::ObservedRange& range,
                                           void* data) -> std::unique_ptr<marey::ObserverContext> {
                                   static_cast<Seen*>(data)->emplace_back(range.name());
                                   return nullptr;
                               },
                               .data = &seen};
    };
    Seen by_main, by_other;
    const auto handle = marey::add_thread_observer(noting(by_main));
    const marey::Context watched = marey::Context::current();
    marey::Context off;
    {
        const marey::EnableGuard guard(false);
        off = marey::Context::current();
    }
    std::thread([&] {
        { MAREY_RANGE("before"); }
        marey::add_thread_observer(noting(by_other));
        {
            const marey::ContextAdoption adoption(watched);
            { MAREY_RANGE("adopted"); }
            {
                const marey::ContextAdoption hidden(off);
                EXPECT_FALSE(marey::is_enabled());
                MAREY_RANGE("hidden");
            }
            EXPECT_TRUE(marey::is_enabled());
            { MAREY_RANGE("adopted again"); }
        }
        { MAREY_RANGE("after"); }
        marey::clear_thread_observers();
    }).join();
    EXPECT_EQ(by_main, (Seen{"adopted", "adopted again"}));
    EXPECT_EQ(by_other, (Seen{"after"}));
    EXPECT_TRUE(marey::remove_observer(handle));
    EXPECT_FALSE(marey::has_observers());
}

TEST(Contexts, AdoptedOutOfOrderLeaveTheThreadAsItWas) {
    const marey::ContextGuard base(kProducer, std::string("base"));
    marey::Context one, two;
    {
        const marey::ContextGuard guard(kProducer, std::string("one"));
        one = marey::Context::current();
    }
    {
        const marey::ContextGuard guard(kProducer, std::string("two"));
        two = marey::Context::current();
    }
    auto outer = std::make_unique<marey::ContextAdoption>(one);
    auto inner = std::make_unique<marey::ContextAdoption>(two);
    outer.reset();
    EXPECT_EQ(producer(), "two");
    inner.reset();
    EXPECT_EQ(producer(), "base");
}

// T8
TEST(Contexts, AdoptedForGoodLastToTheEndOfTheThreadOrOfTheAdoptionAround) {
    marey::Context one, two;
    {
        const marey::ContextGuard guard(kProducer, std::string("one"));
        one = marey::Context::current();
    }
    {
        const marey::ContextGuard guard(kProducer, std::string("two"));
        two = marey::Context::current();
    }
    std::thread([&] {
        {
            const marey::ContextGuard guard(kRequest, 1);
            marey::adopt(one);
            EXPECT_EQ(marey::context_value(kRequest), nullptr);
        }
        EXPECT_EQ(producer(), "one");
        {
            const marey::ContextAdoption adoption(two);
            marey::adopt(marey::Context());
            EXPECT_EQ(producer(), "none");
            marey::adopt(two);
            EXPECT_EQ(producer(), "two");
        }
        EXPECT_EQ(producer(), "one");
        marey::adopt(two);
        EXPECT_EQ(producer(), "two");
    }).join();
}

// T8
TEST(Propagate, RunsUnderTheContextOfTheMomentAndPassesEverythingThrough) {
    auto task = [] {
        const marey::ContextGuard guard(kProducer, std::string("poster"));
        auto text = std::make_unique<std::string>("!");  // a callable that can only be moved
        return marey::propagate([text = std::move(text)](std::string&& greeting, int& count) -> int& {
            ++count;
            EXPECT_EQ(greeting + *text, "hello!");
            EXPECT_EQ(producer(), "poster");
            return count;
        });
    }();
    int count = 0;
    EXPECT_EQ(&task("hello", count), &count);
    EXPECT_EQ(&std::as_const(task)("hello", count), &count);
    EXPECT_EQ(&std::move(task)("hello", count), &count);
    EXPECT_EQ(count, 3);
    EXPECT_EQ(producer(), "none");

    const auto failing = marey::propagate([] { throw std::runtime_error("as it was"); });
    EXPECT_THROW(failing(), std::runtime_error);
    EXPECT_EQ(producer(), "none");
}

// T9
TEST(Propagate, ServesThreadsAsyncAndPools) {
    ThreadPool pool(2);
    const marey::ContextGuard guard(kProducer, std::string("main"));
    std::string seen;
    std::thread(marey::propagate([&](const std::string& what) { seen = producer() + what; }), "!").join();
    EXPECT_EQ(seen, "main!");
    EXPECT_EQ(std::async(std::launch::async, marey::propagate(producer)).get(), "main");
    EXPECT_EQ(pool.post(marey::propagate(producer)).get(), "main");
    EXPECT_EQ(pool.post(producer).get(), "none");
    std::thread([&] { seen = producer(); }).join();
    EXPECT_EQ(seen, "none");
}

// ---- ending ranges ----

// R62
TEST(EndAfter, EndsTheRangeBeforeTheValuePasses) {
    marey::Session mine(task_options());
    int value = 0;
    auto continuation = marey::end_after(marey::Range("request"), [&](int more) -> int& {
        MAREY_RANGE("continuation");
        value += more;
        return value;
    });
    std::thread([&] {
        EXPECT_EQ(&continuation(2), &value);
        EXPECT_EQ(value, 2);
    }).join();
    const marey::Trace trace = mine.stop();
    EXPECT_EQ(names(trace), (Names{"request", "continuation"}));
    EXPECT_EQ(unfinished(trace), 0u);
}

// R62
TEST(EndAfter, LetsExceptionsPassAndEndsWithTheWrapperWhenNeverCalled) {
    marey::Session session(marey::SessionOptions{});
    auto failing = marey::end_after(marey::Range("fails"), [] { throw std::logic_error("unchanged"); });
    try {
        failing();
        FAIL();
    } catch (const std::logic_error& error) {
        EXPECT_STREQ(error.what(), "unchanged");
    }
    {
        const auto never = marey::end_after(marey::Range("never called"), [] {});
    }
    const marey::Trace trace = session.stop();
    EXPECT_EQ(names(trace), (Names{"fails", "never called"}));
    EXPECT_EQ(unfinished(trace), 0u);
}

// R62
TEST(EndAfter, HasCalledTheEndCallbacksOnceWhenAFutureIsReady) {
    static std::atomic<int> ends;
    ends = 0;
    const auto handle = marey::add_observer(
        {.end = [](const marey::ObservedRange&, marey::ObserverContext*, void*) { ++ends; }});
    const marey::ContextGuard guard(kProducer, std::string("caller"));
    std::future<std::string> ready =
        std::async(std::launch::async, marey::end_after(marey::Range("request"), [] {
                       EXPECT_EQ(ends, 0);
                       return producer();
                   }));
    EXPECT_EQ(ready.get(), "caller");
    EXPECT_EQ(ends, 1);
    std::future<void> failed =
        std::async(std::launch::async,
                   marey::end_after(marey::Range("fails"), [] { throw std::logic_error("unchanged"); }));
    EXPECT_THROW(failed.get(), std::logic_error);
    EXPECT_EQ(ends, 2);
    auto twice = marey::end_after(marey::Range("twice"), [] {});
    twice();
    twice();
    EXPECT_EQ(ends, 3);
    marey::remove_and_drain(handle);
}

// ---- C, fork ----

TEST(CInterface, CapturesAdoptsAndRestores) {
    marey::Session mine(task_options());
    marey_context* context = nullptr;
    {
        const marey::ContextGuard guard(kProducer, std::string("main"));
        context = marey_context_capture();
    }
    ASSERT_NE(context, nullptr);
    std::thread([&] {
        marey_adoption* const adoption = marey_context_adopt(context);
        marey_context_free(context);
        EXPECT_EQ(producer(), "main");
        { MAREY_RANGE("adopted"); }
        marey_adoption* const nothing = marey_context_adopt(nullptr);
        EXPECT_EQ(producer(), "none");
        marey_context_restore(nothing);
        EXPECT_EQ(producer(), "main");
        marey_context_restore(adoption);
        EXPECT_EQ(producer(), "none");
        { MAREY_RANGE("left"); }
    }).join();
    EXPECT_EQ(names(mine.stop()), (Names{"adopted"}));
}

TEST(Fork, LeavesTheChildItsSlotsAndNoSession) {
    marey::Session mine(task_options());
    const marey::ContextGuard guard(kProducer, std::string("parent"));
    const marey::Context context = marey::Context::current();
    const marey::ContextAdoption adoption(context);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        bool good = producer() == "parent" && !marey::is_recording();
        {
            const marey::ContextAdoption again(context);
            good = good && producer() == "parent" && !marey::is_recording();
        }
        marey::Session own(task_options());
        { MAREY_RANGE("child"); }
        good = good && names(own.stop()) == Names{"child"};
        _exit(good ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    { MAREY_RANGE("parent"); }
    EXPECT_EQ(names(mine.stop()), (Names{"parent"}));
}
