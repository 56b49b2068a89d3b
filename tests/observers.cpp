// observers.cpp: other code watches ranges. Numbers are those of docs/parity.md.
#include <atomic>
#include <barrier>
#include <cmath>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <kymo/c.h>
#include <kymo/kymo.h>

namespace {

using kymo::ObservedRange;
using kymo::Observer;
using kymo::ObserverContext;
using kymo::Scope;

using Calls = std::vector<std::string>;

// Writes down what it is called for.
struct Notes {
    std::string name;
    Calls* calls;
};

std::unique_ptr<ObserverContext> note_start(const ObservedRange& range, void* data) {
    auto& notes = *static_cast<Notes*>(data);
    notes.calls->push_back(notes.name + "+" + std::string(range.name()));
    return nullptr;
}

void note_end(const ObservedRange& range, ObserverContext*, void* data) {
    auto& notes = *static_cast<Notes*>(data);
    notes.calls->push_back(notes.name + "-" + std::string(range.name()));
}

Observer noting(Notes& notes) {
    return {.start = note_start, .end = note_end, .data = &notes};
}

class Observing : public ::testing::Test {
  protected:
    void TearDown() override { kymo::clear_observers(); }
    Calls calls_;
    Notes a_{"a", &calls_};
    Notes b_{"b", &calls_};
    Notes c_{"c", &calls_};
};

// R1 R2
TEST_F(Observing, ARangeHasOneScopeAndTheNumbersOfTheFirstTenAreKept) {
    EXPECT_EQ(static_cast<int>(Scope::Function), 0);
    EXPECT_EQ(static_cast<int>(Scope::BackwardFunction), 1);
    EXPECT_EQ(static_cast<int>(Scope::User), 7);
    EXPECT_EQ(static_cast<int>(Scope::RuntimeModel), 9);
    static std::vector<Scope> seen;
    seen.clear();
    kymo::add_observer({.start = [](const ObservedRange& range, void*) -> std::unique_ptr<ObserverContext> {
        seen.push_back(range.scope());
        return nullptr;
    }});
    { KYMO_RANGE("u"); }
    { KYMO_FUNCTION(); }
    { KYMO_RANGE_SCOPE(Scope::BackwardFunction, "b"); }
    EXPECT_EQ(seen, (std::vector{Scope::User, Scope::Function, Scope::BackwardFunction}));
}

TEST_F(Observing, InstantsAreSeenByThoseThatAskForThemAndForTheirScope) {
    Observer observer{.data = &a_};
    observer.instant = [](const ObservedRange& instant, void* data) {
        auto& notes = *static_cast<Notes*>(data);
        notes.calls->push_back(std::string(instant.name()) + " of " + kymo::scope_name(instant.scope()));
        kymo::instant("in a callback");
    };
    kymo::add_observer(observer);
    observer.scopes = {Scope::Step};
    kymo::add_observer(observer);
    kymo::add_observer(noting(b_));
    kymo::instant("plain");
    kymo::instant("with values", "key", 5);
    { KYMO_RANGE("range"); }
    kymo::Session session;
    session.start();
    kymo::instant("recorded", "key", 5);
    EXPECT_EQ(session.stop().instants().size(), 2u);
    EXPECT_EQ(calls_,
              (Calls{"plain of user", "with values of user", "b+range", "b-range", "recorded of user"}));
}

// R4 R7 R69
TEST_F(Observing, ScopesChooseAndAnEmptySetMeansAll) {
    Observer functions = noting(a_);
    functions.scopes = {Scope::Function};
    kymo::add_observer(functions);
    kymo::add_observer(noting(b_));
    { KYMO_RANGE("user"); }
    { KYMO_RANGE_SCOPE(Scope::Function, "function"); }
    EXPECT_EQ(calls_, (Calls{"b+user", "b-user", "a+function", "b+function", "a-function", "b-function"}));
}

// R5 R9
TEST_F(Observing, AContextGoesFromStartToEndAndDiesWithTheRange) {
    static int destroyed;
    destroyed = 0;
    struct Held : ObserverContext {
        explicit Held(std::string for_whom) : text(std::move(for_whom)) {}
        ~Held() override { ++destroyed; }
        std::string text;
    };
    static Calls seen;
    seen.clear();
    kymo::add_observer({.start = [](const ObservedRange& range, void*) -> std::unique_ptr<ObserverContext> {
                            return std::make_unique<Held>("for " + std::string(range.name()));
                        },
                        .end = [](const ObservedRange&, ObserverContext* context,
                                  void*) { seen.push_back(static_cast<Held*>(context)->text); }});
    {
        KYMO_RANGE("outer");
        { KYMO_RANGE("inner"); }
        EXPECT_EQ(destroyed, 1);
    }
    EXPECT_EQ(seen, (Calls{"for inner", "for outer"}));
    EXPECT_EQ(destroyed, 2);
}

// R6
TEST_F(Observing, EitherCallbackMayBeMissing) {
    Observer only_start = noting(a_);
    only_start.end = nullptr;
    Observer only_end = noting(b_);
    only_end.start = nullptr;
    kymo::add_observer(only_start);
    kymo::add_observer(only_end);
    { KYMO_RANGE("r"); }
    EXPECT_EQ(calls_, (Calls{"a+r", "b-r"}));
}

// R7
TEST_F(Observing, ASamplingProbabilityOutsideItsRangeIsRefused) {
    for (const double wrong : {-0.1, 1.1, std::nan("")}) {
        Observer observer = noting(a_);
        observer.sampling = wrong;
        EXPECT_THROW(kymo::add_observer(observer), kymo::Error) << wrong;
    }
    EXPECT_FALSE(kymo::has_observers());
}

// R11 R69
TEST_F(Observing, WhatACallbackThrowsIsSaidOnceAndDisturbsNobody) {
    static bool ended_with_null = false;
    ended_with_null = false;
    kymo::add_observer({.start = [](const ObservedRange&, void*) -> std::unique_ptr<ObserverContext> {
                            throw std::runtime_error("no start today");
                        },
                        .end =
                            [](const ObservedRange&, ObserverContext* context, void*) {
                                ended_with_null = context == nullptr;
                                throw 42;
                            }});
    kymo::add_observer(noting(b_));
    testing::internal::CaptureStderr();
    { KYMO_RANGE("one"); }
    { KYMO_RANGE("two"); }
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("no start today"), std::string::npos);
    EXPECT_EQ(said.find("no start today"), said.rfind("no start today"));
    EXPECT_TRUE(ended_with_null);
    EXPECT_EQ(calls_, (Calls{"b+one", "b-one", "b+two", "b-two"}));
}

// R13 R69
TEST_F(Observing, HandlesAreNeverZeroAndNeverReused) {
    std::set<kymo::ObserverHandle> handles;
    for (int i = 0; i < 100; ++i) {
        const auto handle =
            i % 2 == 0 ? kymo::add_observer(noting(a_)) : kymo::add_thread_observer(noting(a_));
        EXPECT_NE(handle, 0u);
        EXPECT_TRUE(handles.insert(handle).second);
        EXPECT_TRUE(kymo::remove_observer(handle));
        EXPECT_FALSE(kymo::remove_observer(handle));
    }
}

// R14 R15 R16
TEST_F(Observing, OneCanBeSwitchedOffAndOnAndOnlyEnabledOnesCount) {
    EXPECT_FALSE(kymo::has_observers());
    const auto global = kymo::add_observer(noting(a_));
    const auto own = kymo::add_thread_observer(noting(b_));
    EXPECT_TRUE(kymo::has_global_observers());
    EXPECT_TRUE(kymo::has_thread_observers());
    EXPECT_TRUE(kymo::disable_observer(global));
    EXPECT_TRUE(kymo::disable_observer(global));
    EXPECT_FALSE(kymo::has_global_observers());
    { KYMO_RANGE("r"); }
    EXPECT_EQ(calls_, (Calls{"b+r", "b-r"}));
    EXPECT_TRUE(kymo::disable_observer(own));
    EXPECT_FALSE(kymo::has_observers());
    EXPECT_TRUE(kymo::enable_observer(global));
    { KYMO_RANGE("s"); }
    EXPECT_EQ(calls_, (Calls{"b+r", "b-r", "a+s", "a-s"}));
    EXPECT_FALSE(kymo::disable_observer(12345678));
    // Another thread's own observer is out of reach.
    std::thread([&] { EXPECT_FALSE(kymo::remove_observer(own)); }).join();
    EXPECT_TRUE(kymo::remove_observer(own));
    kymo::clear_global_observers();
    EXPECT_FALSE(kymo::has_observers());
}

// R69
TEST_F(Observing, ThoseOfAThreadSeeOnlyThatThread) {
    kymo::add_thread_observer(noting(a_));
    std::thread([] { KYMO_RANGE("elsewhere"); }).join();
    { KYMO_RANGE("here"); }
    EXPECT_EQ(calls_, (Calls{"a+here", "a-here"}));
}

// R18
TEST_F(Observing, ARemovedOneStillEndsWhatItHasSeenStart) {
    const auto handle = kymo::add_observer(noting(a_));
    {
        KYMO_RANGE("open");
        kymo::remove_observer(handle);
        { KYMO_RANGE("later"); }
    }
    EXPECT_EQ(calls_, (Calls{"a+open", "a-open"}));
}

// R19 R20 R69
TEST_F(Observing, GlobalOnesComeFirstAndEndsComeInTheSameOrderAsStarts) {
    kymo::add_thread_observer(noting(c_));
    kymo::add_observer(noting(a_));
    kymo::add_observer(noting(b_));
    { KYMO_RANGE("r"); }
    EXPECT_EQ(calls_, (Calls{"a+r", "b+r", "c+r", "a-r", "b-r", "c-r"}));
}

// R21 R22 R42
TEST_F(Observing, AnOperationThatNeverBeganIsNothingAndEndingTwiceIsHarmless) {
    kymo::add_observer(noting(a_));
    {
        const kymo::Operation silent;
        EXPECT_TRUE(silent.is_active());
    }
    EXPECT_TRUE(calls_.empty());
    kymo::Operation op;
    op.begin("op");
    op.begin("again");
    op.end();
    op.end();
    EXPECT_FALSE(op.is_active());
    EXPECT_EQ(calls_, (Calls{"a+op", "a-op"}));
}

// R23
TEST_F(Observing, OneThatIsAddedInsideARangeDoesNotEndIt) {
    {
        KYMO_RANGE("open before");
        kymo::add_observer(noting(a_));
    }
    kymo::clear_global_observers();
    kymo::Operation op;
    kymo::add_observer(noting(b_));
    op.begin("frozen when made");
    op.end();
    EXPECT_TRUE(calls_.empty());
}

// R24 R25 R26
TEST_F(Observing, AThreadCanBeSwitchedOffAndGuardsNest) {
    kymo::add_observer(noting(a_));
    EXPECT_TRUE(kymo::is_enabled());
    {
        const kymo::EnableGuard off(false);
        { KYMO_RANGE("hidden"); }
        {
            const kymo::EnableGuard on(true);
            { KYMO_RANGE("seen"); }
            std::thread([] { EXPECT_TRUE(kymo::is_enabled()); }).join();
        }
        EXPECT_FALSE(kymo::is_enabled());
        { KYMO_RANGE("hidden again"); }
    }
    EXPECT_TRUE(kymo::is_enabled());
    EXPECT_EQ(calls_, (Calls{"a+seen", "a-seen"}));
}

TEST_F(Observing, AThreadThatIsSwitchedOffMayAddObserversAndStartSessions) {
    std::thread([this] {
        const kymo::EnableGuard off(false);
        kymo::add_thread_observer(noting(a_));
        kymo::Session session(kymo::SessionOptions{.threads = kymo::Threads::Tasks});
        {
            const kymo::EnableGuard on(true);
            KYMO_RANGE("seen");
        }
        EXPECT_EQ(session.stop().ranges().size(), 1u);
        EXPECT_FALSE(kymo::is_enabled());
    }).join();
    EXPECT_EQ(calls_, (Calls{"a+seen", "a-seen"}));
}

// R26
TEST_F(Observing, ARangeThatIsOpenWhenTheThreadIsSwitchedOffStillEnds) {
    kymo::Session session{kymo::SessionOptions{}};
    kymo::add_observer(noting(a_));
    std::optional<kymo::EnableGuard> off;
    {
        KYMO_RANGE("observed");
        kymo::Range movable("movable");
        off.emplace(false);
    }
    { KYMO_RANGE("hidden"); }
    off.reset();
    kymo::clear_observers();
    std::optional<kymo::EnableGuard> off_again;
    {
        KYMO_RANGE("recorded inline");
        off_again.emplace(false);
    }
    off_again.reset();
    const kymo::Trace trace = session.stop();
    EXPECT_EQ(calls_, (Calls{"a+observed", "a+movable", "a-movable", "a-observed"}));
    std::multiset<std::string> names;
    for (kymo::Row row = 0; row < trace.ranges().size(); ++row) {
        names.emplace(trace.range_name(row));
        EXPECT_EQ(trace.ranges().flags[row] & kymo::kUnfinished, 0) << trace.range_name(row);
    }
    EXPECT_EQ(names, (std::multiset<std::string>{"movable", "observed", "recorded inline"}));
}

// ---- sampling ----

struct Count {
    std::atomic<int> starts{0};
    std::atomic<int> ends{0};
};
Observer counting(Count& count) {
    return {
        .start = [](const ObservedRange&, void* data) -> std::unique_ptr<ObserverContext> {
            ++static_cast<Count*>(data)->starts;
            return nullptr;
        },
        .end = [](const ObservedRange&, ObserverContext*, void* data) { ++static_cast<Count*>(data)->ends; },
        .data = &count};
}

void open_ranges(int count) {
    for (int i = 0; i < count; ++i) {
        KYMO_RANGE("sampled");
    }
}

// R28 R29 R30 R69
TEST_F(Observing, SamplingKeepsItsShareInPairs) {
    kymo::seed_sampling_for_testing(7);
    for (const double share : {0.5, 0.1, 0.01}) {
        Count count;
        Observer observer = counting(count);
        observer.sampling = share;
        const auto handle = kymo::add_observer(observer);
        open_ranges(100'000);
        kymo::remove_and_drain(handle);
        EXPECT_EQ(count.starts, count.ends);
        EXPECT_NEAR(count.starts, 100'000 * share, 5 * std::sqrt(100'000 * share)) << share;
    }
    Count never;
    Observer observer = counting(never);
    observer.sampling = 0;
    const auto handle = kymo::add_observer(observer);
    open_ranges(1000);
    EXPECT_TRUE(kymo::has_observers());
    kymo::remove_and_drain(handle);
    EXPECT_EQ(never.starts, 0);
    kymo::seed_sampling_for_testing(0);
}

// R28
TEST_F(Observing, SampledAndUnsampledOnesDoNotDisturbEachOther) {
    kymo::seed_sampling_for_testing(8);
    Count all;
    Count some;
    Count few;
    Observer sampled = counting(some);
    sampled.sampling = 0.25;
    Observer rare = counting(few);
    rare.sampling = 0.01;
    kymo::add_observer(counting(all));
    kymo::add_observer(sampled);
    kymo::add_observer(rare);
    open_ranges(40'000);
    EXPECT_EQ(all.starts, 40'000);
    EXPECT_NEAR(some.starts, 10'000, 500);
    EXPECT_NEAR(few.starts, 400, 100);
    EXPECT_EQ(some.starts, some.ends);
    kymo::clear_observers();
    // Two sampled ones alone take the way that counts down for both at once.
    some.starts = few.starts = 0;
    kymo::add_observer(sampled);
    kymo::add_observer(rare);
    open_ranges(40'000);
    EXPECT_NEAR(some.starts, 10'000, 500);
    EXPECT_NEAR(few.starts, 400, 100);
    kymo::clear_observers();
    kymo::seed_sampling_for_testing(0);
}

// R31
TEST_F(Observing, SamplingIsReproducibleUnderASeedAndThreadsDrawApart) {
    static thread_local std::vector<int>* hits = nullptr;
    static thread_local int at = 0;
    Observer observer{.start = [](const ObservedRange&, void*) -> std::unique_ptr<ObserverContext> {
        hits->push_back(at);
        return nullptr;
    }};
    observer.sampling = 0.05;
    const auto run = [&] {
        std::vector<int> found;
        hits = &found;
        for (at = 0; at < 2000; ++at) {
            KYMO_RANGE("sampled");
        }
        return found;
    };
    kymo::add_observer(observer);
    kymo::seed_sampling_for_testing(99);
    const std::vector<int> first = run();
    std::vector<int> other;
    std::thread([&] { other = run(); }).join();
    kymo::seed_sampling_for_testing(99);
    EXPECT_EQ(run(), first);
    EXPECT_NE(other, first);
    kymo::seed_sampling_for_testing(100);
    EXPECT_NE(run(), first);
    kymo::seed_sampling_for_testing(0);
}

// R32 R39
TEST_F(Observing, InputsAreGatheredOnlyForAnObserverThatWillSeeThisVeryRange) {
    kymo::seed_sampling_for_testing(5);
    static int seen = 0;
    seen = 0;
    Observer observer{.start = [](const ObservedRange& range, void*) -> std::unique_ptr<ObserverContext> {
        EXPECT_EQ(range.inputs().size(), 1u);
        ++seen;
        return nullptr;
    }};
    observer.sampling = 0.01;
    observer.needs_inputs = true;
    kymo::add_observer(observer);
    int gathered = 0;
    for (int i = 0; i < 20'000; ++i) {
        kymo::Operation op;
        if (op.inputs_wanted()) {
            ++gathered;
            op.begin("op", {}, {kymo::Value(i)});
        } else {
            op.begin("op");
        }
    }
    EXPECT_EQ(gathered, seen);
    EXPECT_NEAR(seen, 200, 70);
    // The same for values in a macro: they are evaluated when somebody will look.
    seen = 0;
    kymo::clear_observers();
    Observer keyed{.start = [](const ObservedRange& range, void*) -> std::unique_ptr<ObserverContext> {
        EXPECT_EQ(range.keywords().size(), 1u);
        EXPECT_EQ(range.keywords()[0].key, "n");
        ++seen;
        return nullptr;
    }};
    keyed.sampling = 0.01;
    keyed.needs_inputs = true;
    kymo::add_observer(keyed);
    int evaluated = 0;
    for (int i = 0; i < 20'000; ++i) {
        KYMO_RANGE("valued", "n", ++evaluated);
    }
    EXPECT_EQ(evaluated, seen);
    EXPECT_NEAR(seen, 200, 70);
    kymo::seed_sampling_for_testing(0);
}

// R17 R35
TEST_F(Observing, AddingAndRemovingIsSeenByThreadsThatRunAlready) {
    Count count;
    std::barrier step(2);
    std::thread runs([&] {
        for (int round = 0; round < 3; ++round) {
            step.arrive_and_wait();
            open_ranges(10);
            step.arrive_and_wait();
        }
    });
    const auto round = [&] {
        step.arrive_and_wait();
        step.arrive_and_wait();
    };
    round();
    EXPECT_EQ(count.starts, 0);
    const auto handle = kymo::add_observer(counting(count));
    round();
    EXPECT_EQ(count.starts, 10);
    kymo::remove_observer(handle);
    round();
    EXPECT_EQ(count.starts, 10);
    runs.join();
}

// R8 R41
TEST_F(Observing, ManyObserversOfOneRangeKeepTheirOrderAndContexts) {
    constexpr int kMany = 40;
    struct Held : ObserverContext {
        explicit Held(long which) : number(which) {}
        long number;
    };
    static std::vector<long> starts;
    static std::vector<long> ends;
    starts.clear();
    ends.clear();
    for (long i = 0; i < kMany; ++i) {
        kymo::add_observer(
            {.start = [](const ObservedRange&, void* data) -> std::unique_ptr<ObserverContext> {
                 starts.push_back(reinterpret_cast<long>(data));
                 return std::make_unique<Held>(reinterpret_cast<long>(data));
             },
             .end =
                 [](const ObservedRange&, ObserverContext* context, void* data) {
                     EXPECT_EQ(static_cast<Held*>(context)->number, reinterpret_cast<long>(data));
                     ends.push_back(reinterpret_cast<long>(data));
                 },
             .data = reinterpret_cast<void*>(i)});
    }
    { KYMO_RANGE("r"); }
    ASSERT_EQ(starts.size(), static_cast<std::size_t>(kMany));
    for (long i = 0; i < kMany; ++i) EXPECT_EQ(starts[static_cast<std::size_t>(i)], i);
    EXPECT_EQ(starts, ends);
}

// ---- in each other's way ----

// R69
TEST_F(Observing, RangesThatACallbackOpensAreRecordedAndNotObserved) {
    kymo::Session session{kymo::SessionOptions{}};
    Count count;
    Observer observer{.start = [](const ObservedRange&, void* data) -> std::unique_ptr<ObserverContext> {
                          ++static_cast<Count*>(data)->starts;
                          KYMO_RANGE("in a callback");
                          return nullptr;
                      },
                      .data = &count};
    kymo::add_observer(observer);
    { KYMO_RANGE("outer"); }
    kymo::clear_observers();
    const kymo::Trace trace = session.stop();
    EXPECT_EQ(count.starts, 1);
    ASSERT_EQ(trace.ranges().size(), 2u);
    EXPECT_EQ(trace.range_name(0), "in a callback");
    EXPECT_EQ(trace.range_name(1), "outer");
    EXPECT_EQ(trace.ranges().depth[1], 0u);
}

// R69
TEST_F(Observing, ACallbackMaySwitchItsOwnObserverOff) {
    struct Once {
        kymo::ObserverHandle handle = 0;
        int starts = 0;
        int ends = 0;
    } once;
    const auto handle = kymo::add_observer(
        {.start = [](const ObservedRange&, void* data) -> std::unique_ptr<ObserverContext> {
             auto& mine = *static_cast<Once*>(data);
             ++mine.starts;
             EXPECT_TRUE(kymo::disable_observer(mine.handle));
             return nullptr;
         },
         .end = [](const ObservedRange&, ObserverContext*, void* data) { ++static_cast<Once*>(data)->ends; },
         .data = &once});
    once.handle = handle;
    { KYMO_RANGE("one"); }
    { KYMO_RANGE("two"); }
    EXPECT_EQ(once.starts, 1);
    EXPECT_EQ(once.ends, 1);  // of what it has seen start
    EXPECT_TRUE(kymo::enable_observer(handle));
    { KYMO_RANGE("three"); }
    EXPECT_EQ(once.starts, 2);
}

// R66
TEST_F(Observing, SessionsMayStartAndStopInsideObservedRanges) {
    Count count;
    kymo::add_observer(counting(count));
    for (int i = 0; i < 3; ++i) {
        std::optional<kymo::Session> session;
        {
            KYMO_RANGE("begins off");
            session.emplace(kymo::SessionOptions{});
            { KYMO_RANGE("inside"); }
        }
        std::optional<kymo::Trace> trace;
        {
            KYMO_RANGE("ends off");
            trace = session->stop();
        }
        EXPECT_EQ(trace->ranges().size(), 2u);
    }
    EXPECT_EQ(count.starts, 9);
    EXPECT_EQ(count.ends, 9);
}

// R68
TEST_F(Observing, TwoMacrosInOneBlockDoNotCollide) {
    kymo::add_observer(noting(a_));
    {
        KYMO_RANGE("one");
        KYMO_RANGE("two");
        KYMO_FUNCTION();
    }
    ASSERT_EQ(calls_.size(), 6u);
    EXPECT_EQ(calls_[1], "a+two");
}

TEST_F(Observing, TheCInterfaceIsObservedToo) {
    kymo::add_observer(noting(a_));
    const kymo_site site = kymo_intern("from C", nullptr, 0, KYMO_SCOPE_USER);
    kymo_begin(site);
    kymo_begin_named("inner");
    kymo_end();
    kymo_end();
    EXPECT_EQ(calls_, (Calls{"a+from C", "a+inner", "a-inner", "a-from C"}));
}

}  // namespace
