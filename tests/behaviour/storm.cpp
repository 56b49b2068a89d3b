// storm.cpp: many threads do everything at once to observers, contexts, sessions and each other's ranges.
// MAREY_STORM_SECONDS is the duration (2); meant for ThreadSanitizer.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <marey/all.h>
#include <marey/c.h>

#include "support/thread_pool.h"

namespace {

using marey::ObservedRange;
using marey::Observer;
using marey::ObserverContext;
using marey::ObserverHandle;
using marey::Scope;

constexpr int kThreads = 16;
constexpr int kMaxDepth = 4;  // of nested actions

// Objects that one thread puts in and another one takes out.
template <class Thing, std::size_t kMax>
class Pool {
  public:
    /// Returns the object that no longer fits.
    std::optional<Thing> put(Thing thing, std::size_t place) {
        std::lock_guard lock(mutex_);
        if (things_.size() < kMax) {
            things_.push_back(std::move(thing));
            return std::nullopt;
        }
        std::swap(things_[place % kMax], thing);
        return thing;
    }
    std::optional<Thing> take(std::size_t place) {
        std::lock_guard lock(mutex_);
        if (things_.empty()) return std::nullopt;
        std::swap(things_[place % things_.size()], things_.back());
        std::optional<Thing> thing(std::move(things_.back()));
        things_.pop_back();
        return thing;
    }

  private:
    std::mutex mutex_;
    std::vector<Thing> things_;  // under mutex_
};

using Task = std::packaged_task<void()>;
struct Pools {
    Pool<marey::Range, 24> ranges;
    Pool<marey::Context, 24> contexts;
    Pool<Task, 24> tasks;
    Pool<std::unique_ptr<marey::Session>, 4> sessions;
};
Pools* pools = nullptr;  // of the storm that runs; callbacks use it too

// The history of one observer. Lives until the storm's end: a context may still hold the observer.
struct Account {
    bool keeps_contexts = false;
    bool is_meddling = false;  ///< its callbacks end ranges, open some, and remove it
    std::atomic<ObserverHandle> handle{0};
    std::atomic<std::uint64_t> starts{0}, ends{0}, reports{0};
    std::atomic<std::uint64_t> made{0}, destroyed{0}, dropped{0};
    std::atomic<std::uint64_t> wrong{0};      ///< wrong context, ended twice, or destroyed
    std::atomic<std::uint64_t> late{0};       ///< calls after remove_and_drain has returned
    std::atomic<bool> is_drained{false};      ///< it has returned
    std::atomic<std::uint64_t> cut_short{0};  ///< it has returned while one of its callbacks ran
};

struct Held : ObserverContext {
    static constexpr std::uint64_t kAlive = 0x600d600d600d600d;
    explicit Held(Account& of_whom) : account(of_whom) { ++account.made; }
    ~Held() override {
        if (mark != kAlive) ++account.wrong;
        mark = 0;
        if (!is_ended) ++account.dropped;
        ++account.destroyed;
    }
    Account& account;
    volatile std::uint64_t mark = kAlive;
    bool is_ended = false;
};

void meddle(Account& account, std::uint64_t call) {
    if (call % 8 == 0) {
        if (std::optional<marey::Range> range = pools->ranges.take(call)) range->end();
    }
    if (call % 8 == 1) {
        MAREY_RANGE("in a callback", "call", call);
    }
    if (call % 64 == 2) {
        const ObserverHandle handle = account.handle;
        if (handle != 0) marey::remove_observer(handle);
    }
    if (call % 16 == 3) {
        EXPECT_THROW(marey::remove_and_drain(account.handle), marey::Error);
    }
}

template <class Body>
void called(Account& account, Body body) {
    if (account.is_drained) ++account.late;
    body();
    if (account.is_meddling) std::this_thread::yield();  // time for a drainer to fail
    if (account.is_drained) ++account.cut_short;
}

std::unique_ptr<ObserverContext> count_start(const ObservedRange& range, void* data) {
    auto& account = *static_cast<Account*>(data);
    std::unique_ptr<ObserverContext> context;
    called(account, [&] {
        const std::uint64_t call = ++account.starts;
        if (range.name().empty()) ++account.wrong;
        if (account.is_meddling) meddle(account, call);
        if (account.keeps_contexts) context = std::make_unique<Held>(account);
    });
    return context;
}

void count_end(const ObservedRange& range, ObserverContext* context, void* data) {
    auto& account = *static_cast<Account*>(data);
    called(account, [&] {
        const std::uint64_t call = ++account.ends;
        if (range.name().empty() || (context != nullptr) != account.keeps_contexts) ++account.wrong;
        if (auto* const held = static_cast<Held*>(context)) {
            if (&held->account != &account || held->mark != Held::kAlive || held->is_ended) ++account.wrong;
            held->is_ended = true;
        }
        if (account.is_meddling) meddle(account, call);
    });
}

void count_report(const marey::MemoryReport&, void* data) {
    auto& account = *static_cast<Account*>(data);
    called(account, [&] { ++account.reports; });
}

inline constexpr marey::ContextSlot<int> kNumber{"number"};

// One thread of the storm.
class Stormer {
  public:
    explicit Stormer(unsigned seed) : random_(seed) {}

    void run(std::chrono::steady_clock::time_point end) {
        while (std::chrono::steady_clock::now() < end) {
            for (int i = 0; i < 32; ++i) act(0);
        }
        clean_up();
        EXPECT_FALSE(marey::has_thread_observers());
    }
    /// The actions of a thread that ends soon, and sometimes leaves its observers behind.
    void run_briefly() {
        if (one_in(2)) add(true);
        if (std::optional<marey::Context> context = pools->contexts.take(draw()))
            marey::adopt(*context);  // until the thread ends
        for (int i = 0; i < 4; ++i) act(kMaxDepth - 1);
        pool_range();
        if (one_in(2)) std::erase_if(mine_, [](const Mine& one) { return one.of_thread; });
        clean_up();
    }
    /// Its own, and those of the threads that it has started.
    template <class Visit>
    void for_each_account(Visit visit) const {
        for (const Account& account : accounts_) visit(account);
        for (const auto& brief : brief_) brief->for_each_account(visit);
    }

  private:
    struct Mine {
        Account* account;
        bool of_thread;
    };

    unsigned draw() { return static_cast<unsigned>(random_()); }
    bool one_in(unsigned n) { return draw() % n == 0; }

    // One of many actions; those that open a scope do more inside it.
    void act(int depth) {
        switch (draw() % 18) {
            case 0:
                return add(one_in(2));
            case 1:
                return remove(depth);
            case 2:
                return toggle();
            case 3: {
                MAREY_RANGE("storm", "depth", depth, "text", "some words");
                return inside(depth);
            }
            case 4: {
                MAREY_RANGE_SCOPE(Scope::Function, "function");
                return inside(depth);
            }
            case 5:
                return operate(depth);
            case 6:
            case 7:
                return pool_range();
            case 8:
                if (std::optional<marey::Range> range = pools->ranges.take(draw())) range->end();
                return;
            case 9:
                (void)pools->contexts.put(marey::Context::current(), draw());
                return;
            case 10:
            case 11:
                return adopt(depth);
            case 12: {
                const marey::EnableGuard guard(one_in(2));
                return inside(depth);
            }
            case 13: {
                const marey::ContextGuard<int> guard(kNumber, depth);
                return inside(depth);
            }
            case 14:
                return hand_out(depth);
            case 15:
                if (one_in(4)) record(depth);
                return;
            case 16: {
                int block = 0;
                marey::report_allocation(&block, one_in(2) ? 64 : -64, 64, 128);
                if (one_in(4)) marey::report_out_of_memory(1 << 20, 0, 128);
                marey::instant("instant", "n", depth);
                marey::counter("counter", depth);
                return;
            }
            default: {
                marey_begin_named("object-less");
                inside(depth);
                marey_end();
                if (one_in(100)) std::thread([this] { briefly(); }).join();
                return;
            }
        }
    }

    void inside(int depth) {
        if (depth + 1 >= kMaxDepth) return;
        for (unsigned i = draw() % 4; i != 0; --i) act(depth + 1);
    }

    void add(bool of_thread) {
        if (mine_.size() >= 4) return;
        Account& account = accounts_.emplace_back();
        account.keeps_contexts = one_in(2);
        account.is_meddling = one_in(3);
        Observer observer{.start = count_start, .end = count_end, .data = &account};
        if (one_in(3)) observer.memory = count_report;
        observer.needs_inputs = one_in(2);
        observer.needs_outputs = one_in(2);
        observer.needs_ids = one_in(2);
        if (one_in(3)) observer.sampling = 0.5;
        if (one_in(4)) observer.scopes = {Scope::Function};
        account.handle = of_thread ? marey::add_thread_observer(observer) : marey::add_observer(observer);
        mine_.push_back({&account, of_thread});
    }

    void remove(int depth) {
        if (mine_.empty()) return;
        std::swap(mine_[draw() % mine_.size()], mine_.back());
        const Mine last = mine_.back();
        mine_.pop_back();
        remove(last);
        // In an adoption it may be out of reach, and an observer that was removed there is back after it.
        if (last.of_thread && depth != 0) again_.push_back(last);
        if (depth == 0) remove_again();
    }
    void remove(const Mine& one) {
        Account& account = *one.account;
        bool found;
        if (one_in(2)) {
            found = marey::remove_and_drain(account.handle);
            if (found) account.is_drained = true;
        } else {
            found = marey::remove_observer(account.handle);
        }
        // A global observer is always there, unless it has removed itself.
        if (!found && !one.of_thread && !account.is_meddling) ++account.wrong;
    }
    void remove_again() {
        for (const Mine& one : again_) remove(one);
        again_.clear();
    }

    void toggle() {
        if (mine_.empty()) return;
        const ObserverHandle handle = mine_[draw() % mine_.size()].account->handle;
        one_in(2) ? marey::disable_observer(handle) : marey::enable_observer(handle);
    }

    void operate(int depth) {
        const std::int64_t sizes[] = {4, depth};
        marey::ArrayView array;
        array.sizes = sizes;
        const marey::Value values[] = {array, depth, "text"};
        const marey::KeyedValue keywords[] = {{"key", 1.5}};
        marey::Operation operation(one_in(2) ? Scope::Function : Scope::BackwardFunction);
        inside(depth);
        if (one_in(8)) return;  // never begun
        operation.begin("operation", {marey::take_sequence(), 0}, values, keywords);
        inside(depth);
        operation.set_outputs(values);
    }

    void pool_range() {
        marey::Range range = one_in(2) ? marey::Range("pooled", "n", 1) : marey::Range("pooled plainly");
        // An object that does not fit ends here, outside the pool's lock.
        (void)pools->ranges.put(std::move(range), draw());
    }

    void adopt(int depth) {
        const std::optional<marey::Context> context = pools->contexts.take(draw());
        if (!context) return;
        const marey::ContextAdoption adoption(*context);
        inside(depth);
        if (one_in(8)) {
            if (std::optional<marey::Context> other = pools->contexts.take(draw())) marey::adopt(*other);
            inside(depth);
        }
        if (one_in(2)) (void)pools->contexts.put(*context, draw());
    }

    void hand_out(int depth) {
        if (one_in(2)) {
            if (std::optional<Task> task = pools->tasks.take(draw())) (*task)();
            return;
        }
        marey::Range range("continued");
        const auto body = [depth] { MAREY_RANGE("task", "depth", depth); };
        Task task = one_in(2) ? Task(marey::propagate(body)) : Task(marey::end_after(std::move(range), body));
        if (std::optional<Task> other = pools->tasks.put(std::move(task), draw())) (*other)();
    }

    void record(int depth) {
        std::unique_ptr<marey::Session> session;
        if (std::optional<std::unique_ptr<marey::Session>> other = pools->sessions.take(draw()))
            session = std::move(*other);
        if (session == nullptr || one_in(3)) {
            marey::SessionOptions options;
            options.name = "storm";
            options.max_bytes = 4 << 20;
            options.policy = one_in(3) ? marey::Policy::Stop : marey::Policy::Ring;
            options.threads = one_in(2) ? marey::Threads::All : marey::Threads::Tasks;
            options.record_shapes = one_in(2);
            options.concrete_inputs = one_in(2);
            options.profile_memory = one_in(2);
            auto fresh = std::make_unique<marey::Session>(options);
            inside(depth);
            (void)pools->sessions.put(std::move(fresh), draw());  // one without room is discarded
        }
        if (session == nullptr) return;
        switch (draw() % 4) {
            case 0:
                check(session->stop());
                return;
            case 1:
                check(session->snapshot());
                (void)pools->sessions.put(std::move(session), draw());
                return;
            case 2:
                (void)marey::active_options();
                session->discard();
                return;
            default:
                return;  // destroyed while it runs
        }
    }

    static void check(const marey::Trace& trace) {
        const marey::RangeColumns ranges = trace.ranges();
        for (marey::Row row = 0; row < ranges.size(); ++row) {
            if (trace.range_name(row).empty() || ranges.duration_ns[row] < 0)
                ADD_FAILURE() << "range " << row << " '" << trace.range_name(row) << "' lasts "
                              << ranges.duration_ns[row];
        }
    }

    void briefly() {
        brief_.push_back(std::make_unique<Stormer>(draw()));
        brief_.back()->run_briefly();
    }

    void clean_up() {
        while (!mine_.empty()) remove(0);
        remove_again();
    }

    std::mt19937 random_;
    std::deque<Account> accounts_;
    std::vector<std::unique_ptr<Stormer>> brief_;  // threads that it has started and joined
    std::vector<Mine> mine_;
    std::vector<Mine> again_;
};

double storm_seconds() {
    const char* const text = std::getenv("MAREY_STORM_SECONDS");
    return text != nullptr ? std::atof(text) : 2;
}

void expect_balanced(const Account& account) {
    SCOPED_TRACE("observer " + std::to_string(account.handle));
    EXPECT_EQ(account.late, 0u);
    EXPECT_EQ(account.cut_short, 0u);
    EXPECT_EQ(account.wrong, 0u);
    EXPECT_EQ(account.made, account.destroyed);
    EXPECT_EQ(account.made, account.keeps_contexts ? account.starts.load() : 0u);
    if (account.is_drained) {
        EXPECT_LE(account.ends, account.starts);
    } else {
        EXPECT_EQ(account.ends, account.starts);
    }
    EXPECT_EQ(account.dropped, account.keeps_contexts ? account.starts - account.ends : 0u);
}

}  // namespace

// R10 R18 T9
TEST(Storm, EveryStartHasExactlyOneEndOrWasDrained) {
    Pools own_pools;
    pools = &own_pools;
    std::vector<std::unique_ptr<Stormer>> stormers;
    std::vector<std::thread> threads;
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                               std::chrono::duration<double>(storm_seconds()));
    for (unsigned i = 0; i < kThreads; ++i) {
        stormers.push_back(std::make_unique<Stormer>(i + 1));
        threads.emplace_back([stormer = stormers.back().get(), end] { stormer->run(end); });
    }
    for (std::thread& thread : threads) thread.join();
    while (own_pools.sessions.take(0)) {
    }
    while (own_pools.tasks.take(0)) {  // those with a range end it
    }
    while (own_pools.ranges.take(0)) {
    }
    while (own_pools.contexts.take(0)) {
    }
    EXPECT_FALSE(marey::has_observers());
    EXPECT_FALSE(marey::is_recording());
    EXPECT_TRUE(marey::Context::current().is_empty());

    std::uint64_t observers = 0, drained = 0, starts = 0, ends = 0, reports = 0, contexts = 0;
    for (const auto& stormer : stormers) {
        stormer->for_each_account([&](const Account& account) {
            expect_balanced(account);
            ++observers;
            drained += account.is_drained;
            starts += account.starts;
            ends += account.ends;
            reports += account.reports;
            contexts += account.made;
        });
    }
    std::printf("%llu observers, %llu drained; %llu starts, %llu ends, %llu contexts, %llu reports\n",
                static_cast<unsigned long long>(observers), static_cast<unsigned long long>(drained),
                static_cast<unsigned long long>(starts), static_cast<unsigned long long>(ends),
                static_cast<unsigned long long>(contexts), static_cast<unsigned long long>(reports));
    EXPECT_GT(starts, 0u);
    EXPECT_GT(drained, 0u);
    pools = nullptr;

    // No observer is left.
    { MAREY_RANGE("after the storm"); }
    std::uint64_t later = 0;
    for (const auto& stormer : stormers)
        stormer->for_each_account([&](const Account& account) { later += account.starts; });
    EXPECT_EQ(later, starts);
}

TEST(Storm, LeavesARecorderThatRecordsExactly) {
    Account account;
    account.keeps_contexts = true;
    marey::Session all(marey::SessionOptions{});
    marey::Session mine(task_options());
    const ObserverHandle handle =
        marey::add_observer({.start = count_start, .end = count_end, .data = &account});
    Names expected, expected_mine;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
        const auto body = [] {
            MAREY_RANGE("outer", "n", 1);
            for (int k = 0; k < 100; ++k) {
                MAREY_RANGE("inner");
            }
            marey::Range movable("movable");
        };
        const bool is_task = i % 2 == 0;
        threads.emplace_back(is_task ? std::function<void()>(marey::propagate(body)) : body);
        for (Names* names : {&expected, &expected_mine}) {
            if (names == &expected_mine && !is_task) continue;
            names->insert({"outer", "movable"});
            for (int k = 0; k < 100; ++k) names->insert("inner");
        }
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(marey::remove_and_drain(handle));
    const marey::Trace trace_of_mine = mine.stop();
    const marey::Trace trace = all.stop();
    EXPECT_EQ(names(trace), expected);
    EXPECT_EQ(names(trace_of_mine), expected_mine);
    for (const marey::Trace& each : {trace, trace_of_mine}) {
        EXPECT_EQ(unfinished(each), 0u);
        for (const marey::ProblemInfo& problem : each.problems()) ADD_FAILURE() << problem.text;
    }
    EXPECT_EQ(account.starts, 102u * kThreads);
    EXPECT_EQ(account.ends, account.starts);
    EXPECT_EQ(account.destroyed, account.made);
}
