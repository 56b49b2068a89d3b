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

#include <kymo/c.h>
#include <kymo/kymo.h>

#include "thread_pool.h"

#if defined(__SANITIZE_THREAD__)
// The child of a fork starts a thread of its own here (the recorder's), which works.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() {
    return "die_after_fork=0";
}
#endif

namespace {

inline constexpr kymo::ContextSlot<std::string> kProducer{"producer"};
inline constexpr kymo::ContextSlot<int> kRequest{"request"};
inline constexpr kymo::ContextSlot<int> kOther{"request"};  // a slot is its address, not its name

std::string producer() {
    const std::string* const value = kymo::context_value(kProducer);
    return value != nullptr ? *value : "none";
}

}  // namespace

// ---- slots ----

// T1
// T3
TEST(ContextSlots, GiveTheInnermostValueOfTheirKindOrNone) {
    EXPECT_EQ(kymo::context_value(kRequest), nullptr);
    const kymo::ContextGuard outer(kRequest, 1);
    const kymo::ContextGuard producer_guard(kProducer, std::string("loader"));
    {
        const kymo::ContextGuard inner(kRequest, 2);
        EXPECT_EQ(*kymo::context_value(kRequest), 2);
        EXPECT_EQ(producer(), "loader");
    }
    EXPECT_EQ(*kymo::context_value(kRequest), 1);
}

// T2
TEST(ContextSlots, AreKnownByTheirAddressSoThatAnyLibraryAddsItsOwn) {
    const kymo::ContextGuard guard(kRequest, 1);
    EXPECT_EQ(kymo::context_value(kOther), nullptr);
    static constexpr kymo::ContextSlot<int> kLocal{"local"};
    const kymo::ContextGuard local(kLocal, 3);
    EXPECT_EQ(*kymo::context_value(kLocal), 3);
    EXPECT_STREQ(kLocal.name(), "local");
}

// T5
TEST(ContextGuards, RestoreWhatWasBeforeAndDoNothingForNull) {
    const auto shared = std::make_shared<const int>(7);
    {
        const kymo::ContextGuard<int> guard(kRequest, shared);
        EXPECT_EQ(kymo::context_value(kRequest), shared.get());
        const kymo::ContextGuard<int> nothing(kRequest, std::shared_ptr<const int>());
        EXPECT_EQ(kymo::context_value(kRequest), shared.get());
    }
    EXPECT_EQ(kymo::context_value(kRequest), nullptr);
    EXPECT_EQ(shared.use_count(), 1);
}

// T4
TEST(ContextGuards, ThatEndOutOfOrderTakeOutTheirOwnValueOnly) {
    auto first = std::make_unique<kymo::ContextGuard<int>>(kRequest, 1);
    auto second = std::make_unique<kymo::ContextGuard<std::string>>(kProducer, std::string("second"));
    auto third = std::make_unique<kymo::ContextGuard<int>>(kRequest, 3);
    const kymo::Context captured = kymo::Context::current();
    first.reset();
    EXPECT_EQ(*kymo::context_value(kRequest), 3);
    second.reset();
    EXPECT_EQ(producer(), "none");
    EXPECT_EQ(*kymo::context_value(kRequest), 3);
    const kymo::Context later = kymo::Context::current();
    EXPECT_EQ(later.value(kProducer), nullptr);
    EXPECT_EQ(*later.value(kRequest), 3);
    third.reset();
    EXPECT_EQ(kymo::context_value(kRequest), nullptr);
    EXPECT_EQ(*captured.value(kProducer), "second");  // what was captured stays as it was
}

// T4
TEST(ContextGuards, MayEndInsideOrOutliveAnAdoption) {
    const kymo::Context empty;
    auto before = std::make_unique<kymo::ContextGuard<int>>(kRequest, 1);
    const kymo::ContextGuard stays(kProducer, std::string("stays"));
    std::unique_ptr<kymo::ContextGuard<int>> inside;
    {
        const kymo::ContextAdoption adoption(empty);
        EXPECT_EQ(kymo::context_value(kRequest), nullptr);
        inside = std::make_unique<kymo::ContextGuard<int>>(kRequest, 2);
        before.reset();
        EXPECT_EQ(*kymo::context_value(kRequest), 2);
    }
    EXPECT_EQ(kymo::context_value(kRequest), nullptr);
    EXPECT_EQ(producer(), "stays");
    inside.reset();
    EXPECT_EQ(producer(), "stays");
}

TEST(ContextGuards, AreCapturedByTheHundredThousand) {
    std::vector<std::unique_ptr<kymo::ContextGuard<int>>> guards;
    for (int i = 0; i < 100'000; ++i)
        guards.push_back(std::make_unique<kymo::ContextGuard<int>>(kRequest, i));
    kymo::Context context = kymo::Context::current();
    while (!guards.empty()) guards.pop_back();
    EXPECT_EQ(*context.value(kRequest), 99'999);
    context = kymo::Context();  // the list goes without recursion
}

// ---- adopting ----

// T5
TEST(Contexts, AreAdoptedByAnotherThreadAndLeftAgain) {
    kymo::Context context;
    {
        const kymo::ContextGuard guard(kProducer, std::string("main"));
        context = kymo::Context::current();
    }
    std::thread([&] {
        const kymo::ContextGuard own(kProducer, std::string("own"));
        {
            const kymo::ContextAdoption adoption(context);
            EXPECT_EQ(producer(), "main");
            const kymo::ContextGuard deeper(kRequest, 5);
            const kymo::Context inner = kymo::Context::current();
            EXPECT_EQ(*inner.value(kProducer), "main");
            EXPECT_EQ(*inner.value(kRequest), 5);
        }
        EXPECT_EQ(producer(), "own");
        EXPECT_EQ(kymo::context_value(kRequest), nullptr);
    }).join();
}

// T7
// R27
// R69
TEST(Contexts, CarryAThreadsObserversAndItsSwitch) {
    using Seen = std::vector<std::string>;
    const auto noting = [](Seen& seen) {
        return kymo::Observer{.start = [](const kymo::ObservedRange& range,
                                          void* data) -> std::unique_ptr<kymo::ObserverContext> {
                                  static_cast<Seen*>(data)->emplace_back(range.name());
                                  return nullptr;
                              },
                              .data = &seen};
    };
    Seen by_main, by_other;
    const auto handle = kymo::add_thread_observer(noting(by_main));
    const kymo::Context watched = kymo::Context::current();
    kymo::Context off;
    {
        const kymo::EnableGuard guard(false);
        off = kymo::Context::current();
    }
    std::thread([&] {
        { KYMO_RANGE("before"); }
        kymo::add_thread_observer(noting(by_other));
        {
            const kymo::ContextAdoption adoption(watched);
            { KYMO_RANGE("adopted"); }
            {
                const kymo::ContextAdoption hidden(off);
                EXPECT_FALSE(kymo::is_enabled());
                KYMO_RANGE("hidden");
            }
            EXPECT_TRUE(kymo::is_enabled());
            { KYMO_RANGE("adopted again"); }
        }
        { KYMO_RANGE("after"); }
        kymo::clear_thread_observers();
    }).join();
    EXPECT_EQ(by_main, (Seen{"adopted", "adopted again"}));
    EXPECT_EQ(by_other, (Seen{"after"}));
    EXPECT_TRUE(kymo::remove_observer(handle));
    EXPECT_FALSE(kymo::has_observers());
}

TEST(Contexts, AdoptedOutOfOrderLeaveTheThreadAsItWas) {
    const kymo::ContextGuard base(kProducer, std::string("base"));
    kymo::Context one, two;
    {
        const kymo::ContextGuard guard(kProducer, std::string("one"));
        one = kymo::Context::current();
    }
    {
        const kymo::ContextGuard guard(kProducer, std::string("two"));
        two = kymo::Context::current();
    }
    auto outer = std::make_unique<kymo::ContextAdoption>(one);
    auto inner = std::make_unique<kymo::ContextAdoption>(two);
    outer.reset();
    EXPECT_EQ(producer(), "two");
    inner.reset();
    EXPECT_EQ(producer(), "base");
}

// T8
TEST(Contexts, AdoptedForGoodLastToTheEndOfTheThreadOrOfTheAdoptionAround) {
    kymo::Context one, two;
    {
        const kymo::ContextGuard guard(kProducer, std::string("one"));
        one = kymo::Context::current();
    }
    {
        const kymo::ContextGuard guard(kProducer, std::string("two"));
        two = kymo::Context::current();
    }
    std::thread([&] {
        {
            const kymo::ContextGuard guard(kRequest, 1);
            kymo::adopt(one);
            EXPECT_EQ(kymo::context_value(kRequest), nullptr);
        }
        EXPECT_EQ(producer(), "one");
        {
            const kymo::ContextAdoption adoption(two);
            kymo::adopt(kymo::Context());
            EXPECT_EQ(producer(), "none");
            kymo::adopt(two);
            EXPECT_EQ(producer(), "two");
        }
        EXPECT_EQ(producer(), "one");
        kymo::adopt(two);
        EXPECT_EQ(producer(), "two");
    }).join();
}

// T8
TEST(Propagate, RunsUnderTheContextOfTheMomentAndPassesEverythingThrough) {
    auto task = [] {
        const kymo::ContextGuard guard(kProducer, std::string("poster"));
        auto text = std::make_unique<std::string>("!");  // a callable that can only be moved
        return kymo::propagate([text = std::move(text)](std::string&& greeting, int& count) -> int& {
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

    const auto failing = kymo::propagate([] { throw std::runtime_error("as it was"); });
    EXPECT_THROW(failing(), std::runtime_error);
    EXPECT_EQ(producer(), "none");
}

// T9
TEST(Propagate, ServesThreadsAsyncAndPools) {
    ThreadPool pool(2);
    const kymo::ContextGuard guard(kProducer, std::string("main"));
    std::string seen;
    std::thread(kymo::propagate([&](const std::string& what) { seen = producer() + what; }), "!").join();
    EXPECT_EQ(seen, "main!");
    EXPECT_EQ(std::async(std::launch::async, kymo::propagate(producer)).get(), "main");
    EXPECT_EQ(pool.post(kymo::propagate(producer)).get(), "main");
    EXPECT_EQ(pool.post(producer).get(), "none");
    std::thread([&] { seen = producer(); }).join();
    EXPECT_EQ(seen, "none");
}

// ---- ending ranges ----

// R62
TEST(EndAfter, EndsTheRangeBeforeTheValuePasses) {
    kymo::Session mine(of_tasks());
    int value = 0;
    auto continuation = kymo::end_after(kymo::Range("request"), [&](int more) -> int& {
        KYMO_RANGE("continuation");
        value += more;
        return value;
    });
    std::thread([&] {
        EXPECT_EQ(&continuation(2), &value);
        EXPECT_EQ(value, 2);
    }).join();
    const kymo::Trace trace = mine.stop();
    EXPECT_EQ(names(trace), (Names{"request", "continuation"}));
    EXPECT_EQ(unfinished(trace), 0u);
}

// R62
TEST(EndAfter, LetsExceptionsPassAndEndsWithTheWrapperWhenNeverCalled) {
    kymo::Session session(kymo::SessionOptions{});
    auto failing = kymo::end_after(kymo::Range("fails"), [] { throw std::logic_error("unchanged"); });
    try {
        failing();
        FAIL();
    } catch (const std::logic_error& error) {
        EXPECT_STREQ(error.what(), "unchanged");
    }
    {
        const auto never = kymo::end_after(kymo::Range("never called"), [] {});
    }
    const kymo::Trace trace = session.stop();
    EXPECT_EQ(names(trace), (Names{"fails", "never called"}));
    EXPECT_EQ(unfinished(trace), 0u);
}

// R62
TEST(EndAfter, HasCalledTheEndCallbacksOnceWhenAFutureIsReady) {
    static std::atomic<int> ends;
    ends = 0;
    const auto handle = kymo::add_observer(
        {.end = [](const kymo::ObservedRange&, kymo::ObserverContext*, void*) { ++ends; }});
    const kymo::ContextGuard guard(kProducer, std::string("caller"));
    std::future<std::string> ready =
        std::async(std::launch::async, kymo::end_after(kymo::Range("request"), [] {
                       EXPECT_EQ(ends, 0);
                       return producer();
                   }));
    EXPECT_EQ(ready.get(), "caller");
    EXPECT_EQ(ends, 1);
    std::future<void> failed =
        std::async(std::launch::async,
                   kymo::end_after(kymo::Range("fails"), [] { throw std::logic_error("unchanged"); }));
    EXPECT_THROW(failed.get(), std::logic_error);
    EXPECT_EQ(ends, 2);
    auto twice = kymo::end_after(kymo::Range("twice"), [] {});
    twice();
    twice();
    EXPECT_EQ(ends, 3);
    kymo::remove_and_drain(handle);
}

// ---- C, fork ----

TEST(CInterface, CapturesAdoptsAndRestores) {
    kymo::Session mine(of_tasks());
    kymo_context* context = nullptr;
    {
        const kymo::ContextGuard guard(kProducer, std::string("main"));
        context = kymo_context_capture();
    }
    ASSERT_NE(context, nullptr);
    std::thread([&] {
        kymo_adoption* const adoption = kymo_context_adopt(context);
        kymo_context_free(context);
        EXPECT_EQ(producer(), "main");
        { KYMO_RANGE("adopted"); }
        kymo_adoption* const nothing = kymo_context_adopt(nullptr);
        EXPECT_EQ(producer(), "none");
        kymo_context_restore(nothing);
        EXPECT_EQ(producer(), "main");
        kymo_context_restore(adoption);
        EXPECT_EQ(producer(), "none");
        { KYMO_RANGE("left"); }
    }).join();
    EXPECT_EQ(names(mine.stop()), (Names{"adopted"}));
}

TEST(Fork, LeavesTheChildItsSlotsAndNoSession) {
    kymo::Session mine(of_tasks());
    const kymo::ContextGuard guard(kProducer, std::string("parent"));
    const kymo::Context context = kymo::Context::current();
    const kymo::ContextAdoption adoption(context);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        bool good = producer() == "parent" && !kymo::is_recording();
        {
            const kymo::ContextAdoption again(context);
            good = good && producer() == "parent" && !kymo::is_recording();
        }
        kymo::Session own(of_tasks());
        { KYMO_RANGE("child"); }
        good = good && names(own.stop()) == Names{"child"};
        _exit(good ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    { KYMO_RANGE("parent"); }
    EXPECT_EQ(names(mine.stop()), (Names{"parent"}));
}
