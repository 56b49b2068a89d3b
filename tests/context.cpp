// context.cpp: contexts: slots and guards, adoption, propagation, and sessions that follow tasks.
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <kymo/c.h>
#include <kymo/kymo.h>

#if defined(__SANITIZE_THREAD__)
// The child of a fork starts a thread of its own here (the recorder's), which works.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() {
    return "die_after_fork=0";
}
#endif

namespace {

using Names = std::multiset<std::string>;

inline constexpr kymo::ContextSlot<std::string> kProducer{"producer"};
inline constexpr kymo::ContextSlot<int> kRequest{"request"};
inline constexpr kymo::ContextSlot<int> kOther{"request"};  // a slot is its address, not its name

Names names(const kymo::Trace& trace) {
    Names found;
    for (kymo::Row row = 0; row < trace.ranges().size(); ++row)
        found.insert(std::string(trace.range_name(row)));
    return found;
}

std::size_t unfinished(const kymo::Trace& trace) {
    std::size_t count = 0;
    for (const std::uint16_t flags : trace.ranges().flags) count += (flags & kymo::kUnfinished) != 0;
    return count;
}

kymo::SessionOptions of_tasks() {
    return {.threads = kymo::Threads::Tasks};
}

std::string producer() {
    const std::string* const value = kymo::context_value(kProducer);
    return value != nullptr ? *value : "none";
}

/// Runs tasks in order on threads of its own, started before anything is posted.
class ThreadPool {
  public:
    explicit ThreadPool(int threads) {
        for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
    }
    ~ThreadPool() {
        {
            std::lock_guard lock(mutex_);
            is_ending_ = true;
        }
        changed_.notify_all();
        for (std::thread& thread : threads_) thread.join();
    }
    template <class Task>
    auto post(Task task) {
        std::packaged_task<std::invoke_result_t<Task&>()> packaged(std::move(task));
        auto result = packaged.get_future();
        {
            std::lock_guard lock(mutex_);
            tasks_.push_back(std::make_unique<Holder<decltype(packaged)>>(std::move(packaged)));
        }
        changed_.notify_one();
        return result;
    }

  private:
    struct AnyTask {
        virtual ~AnyTask() = default;
        virtual void run() = 0;
    };
    template <class Task>
    struct Holder : AnyTask {
        explicit Holder(Task&& held) : task(std::move(held)) {}
        void run() override { task(); }
        Task task;
    };

    void run() {
        for (;;) {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return is_ending_ || !tasks_.empty(); });
            if (tasks_.empty()) return;
            const std::unique_ptr<AnyTask> task = std::move(tasks_.front());
            tasks_.pop_front();
            lock.unlock();
            task->run();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::unique_ptr<AnyTask>> tasks_;
    bool is_ending_ = false;
    std::vector<std::thread> threads_;
};

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
// T7
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

// ---- ending ranges ----

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
