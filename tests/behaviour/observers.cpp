// observers.cpp: callbacks for ranges. Numbers are those of docs/reference/parity.md.
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
#include <marey/all.h>
#include <marey/c.h>

#include "support/counting_observer.h"

namespace {

using marey::ObservedRange;
using marey::Observer;
using marey::ObserverContext;
using marey::Scope;

using Calls = std::vector<std::string>;

// Logs its callbacks.
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
    void TearDown() override { marey::clear_observers(); }
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
    marey::add_observer({.start = [](const ObservedRange& range, void*) -> std::unique_ptr<ObserverContext> {
        seen.push_back(range.scope());
        return nullptr;
    }});
    { MAREY_RANGE("u"); }
    { MAREY_FUNCTION(); }
    { MAREY_RANGE_SCOPE(Scope::BackwardFunction, "b"); }
    EXPECT_EQ(seen, (std::vector{Scope::User, Scope::Function, Scope::BackwardFunction}));
}

TEST_F(Observing, InstantsAreSeenByObserversThatRequestThemAndTheirScope) {
    Observer observer{.data = &a_};
    observer.instant = [](const ObservedRange& instant, void* data) {
        auto& notes = *static_cast<Notes*>(data);
        notes.calls->push_back(std::string(instant.name()) + " of " + marey::scope_name(instant.scope()));
        marey::instant("in a callback");
    };
    marey::add_observer(observer);
    observer.scopes = {Scope::Step};
    marey::add_observer(observer);
    marey::add_observer(noting(b_));
    marey::instant("plain");
    marey::instant("with values", "key", 5);
    { MAREY_RANGE("range"); }
    marey::Session session;
    session.start();
    marey::instant("recorded", "key", 5);
    EXPECT_EQ(session.stop().instants().size(), 2u);
    EXPECT_EQ(calls_,
              (Calls{"plain of user", "with values of user", "b+range", "b-range", "recorded of user"}));
}

// R4 R7 R69
TEST_F(Observing, ScopesChooseAndAnEmptySetMeansAll) {
    Observer functions = noting(a_);
    functions.scopes = {Scope::Function};
    marey::add_observer(functions);
    marey::add_observer(noting(b_));
    { MAREY_RANGE("user"); }
    { MAREY_RANGE_SCOPE(Scope::Function, "function"); }
    EXPECT_EQ(calls_, (Calls{"b+user", "b-user", "a+function", "b+function", "a-function", "b-function"}));
}

// R5 R9
TEST_F(Observing, AContextGoesFromStartToEndAndIsDestroyedWithTheRange) {
    static int destroyed;
    destroyed = 0;
    struct Held : ObserverContext {
        explicit Held(std::string for_whom) : text(std::move(for_whom)) {}
        ~Held() override { ++destroyed; }
        std::string text;
    };
    static Calls seen;
    seen.clear();
    marey::add_observer({.start = [](const ObservedRange& range, void*) -> std::unique_ptr<ObserverContext> {
                             return std::make_unique<Held>("for " + std::string(range.name()));
                         },
                         .end = [](const ObservedRange&, ObserverContext* context,
                                   void*) { seen.push_back(static_cast<Held*>(context)->text); }});
    {
        MAREY_RANGE("outer");
        { MAREY_RANGE("inner"); }
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
    marey::add_observer(only_start);
    marey::add_observer(only_end);
    { MAREY_RANGE("r"); }
    EXPECT_EQ(calls_, (Calls{"a+r", "b-r"}));
}

// R7
TEST_F(Observing, ASamplingProbabilityOutsideItsRangeIsRefused) {
    for (const double wrong : {-0.1, 1.1, std::nan("")}) {
        Observer observer = noting(a_);
        observer.sampling = wrong;
        EXPECT_THROW(marey::add_observer(observer), marey::Error) << wrong;
    }
    EXPECT_FALSE(marey::has_observers());
}

// R11 R69
TEST_F(Observing, ACallbacksExceptionIsReportedOnceAndDisturbsNothing) {
    static bool ended_with_null = false;
    ended_with_null = false;
    marey::add_observer({.start = [](const ObservedRange&, void*) -> std::unique_ptr<ObserverContext> {
                             throw std::runtime_error("no start today");
                         },
                         .end =
                             [](const ObservedRange&, ObserverContext* context, void*) {
                                 ended_with_null = context == nullptr;
                                 throw 42;
                             }});
    marey::add_observer(noting(b_));
    testing::internal::CaptureStderr();
    { MAREY_RANGE("one"); }
    { MAREY_RANGE("two"); }
    const std::string printed = testing::internal::GetCapturedStderr();
    EXPECT_NE(printed.find("no start today"), std::string::npos);
    EXPECT_EQ(printed.find("no start today"), printed.rfind("no start today"));
    EXPECT_TRUE(ended_with_null);
    EXPECT_EQ(calls_, (Calls{"b+one", "b-one", "b+two", "b-two"}));
}

// R13 R69
TEST_F(Observing, HandlesAreNeverZeroAndNeverReused) {
    std::set<marey::ObserverHandle> handles;
    for (int i = 0; i < 100; ++i) {
        const auto handle =
            i % 2 == 0 ? marey::add_observer(noting(a_)) : marey::add_thread_observer(noting(a_));
        EXPECT_NE(handle, 0u);
        EXPECT_TRUE(handles.insert(handle).second);
        EXPECT_TRUE(marey::remove_observer(handle));
        EXPECT_FALSE(marey::remove_observer(handle));
    }
}

// R14 R15 R16
TEST_F(Observing, AnObserverCanBeSwitchedOffAndOnAndOnlyEnabledOnesCount) {
    EXPECT_FALSE(marey::has_observers());
    const auto global = marey::add_observer(noting(a_));
    const auto own = marey::add_thread_observer(noting(b_));
    EXPECT_TRUE(marey::has_global_observers());
    EXPECT_TRUE(marey::has_thread_observers());
    EXPECT_TRUE(marey::disable_observer(global));
    EXPECT_TRUE(marey::disable_observer(global));
    EXPECT_FALSE(marey::has_global_observers());
    { MAREY_RANGE("r"); }
    EXPECT_EQ(calls_, (Calls{"b+r", "b-r"}));
    EXPECT_TRUE(marey::disable_observer(own));
    EXPECT_FALSE(marey::has_observers());
    EXPECT_TRUE(marey::enable_observer(global));
    { MAREY_RANGE("s"); }
    EXPECT_EQ(calls_, (Calls{"b+r", "b-r", "a+s", "a-s"}));
    EXPECT_FALSE(marey::disable_observer(12345678));
    // Another thread's own observer is out of reach.
    std::thread([&] { EXPECT_FALSE(marey::remove_observer(own)); }).join();
    EXPECT_TRUE(marey::remove_observer(own));
    marey::clear_global_observers();
    EXPECT_FALSE(marey::has_observers());
}

// R69
TEST_F(Observing, ObserversOfAThreadSeeOnlyThatThread) {
    marey::add_thread_observer(noting(a_));
    std::thread([] { MAREY_RANGE("elsewhere"); }).join();
    { MAREY_RANGE("here"); }
    EXPECT_EQ(calls_, (Calls{"a+here", "a-here"}));
}

// R18
TEST_F(Observing, ARemovedObserverStillSeesTheEndsOfRangesItSawStart) {
    const auto handle = marey::add_observer(noting(a_));
    {
        MAREY_RANGE("open");
        marey::remove_observer(handle);
        { MAREY_RANGE("later"); }
    }
    EXPECT_EQ(calls_, (Calls{"a+open", "a-open"}));
}

// R19 R20 R69
TEST_F(Observing, GlobalObserversComeFirstAndEndsComeInTheSameOrderAsStarts) {
    marey::add_thread_observer(noting(c_));
    marey::add_observer(noting(a_));
    marey::add_observer(noting(b_));
    { MAREY_RANGE("r"); }
    EXPECT_EQ(calls_, (Calls{"a+r", "b+r", "c+r", "a-r", "b-r", "c-r"}));
}

// R21 R22 R42
TEST_F(Observing, EndingAnOperationThatNeverBeganOrEndingTwiceIsHarmless) {
    marey::add_observer(noting(a_));
    {
        const marey::Operation silent;
        EXPECT_TRUE(silent.is_active());
    }
    EXPECT_TRUE(calls_.empty());
    marey::Operation op;
    op.begin("op");
    op.begin("again");
    op.end();
    op.end();
    EXPECT_FALSE(op.is_active());
    EXPECT_EQ(calls_, (Calls{"a+op", "a-op"}));
}

// R23
TEST_F(Observing, AnObserverAddedInsideARangeDoesNotSeeItsEnd) {
    {
        MAREY_RANGE("open before");
        marey::add_observer(noting(a_));
    }
    marey::clear_global_observers();
    marey::Operation op;
    marey::add_observer(noting(b_));
    op.begin("frozen when made");
    op.end();
    EXPECT_TRUE(calls_.empty());
}

// R24 R25 R26
TEST_F(Observing, AThreadCanBeSwitchedOffAndGuardsNest) {
    marey::add_observer(noting(a_));
    EXPECT_TRUE(marey::is_enabled());
    {
        const marey::EnableGuard off(false);
        { MAREY_RANGE("hidden"); }
        {
            const marey::EnableGuard on(true);
            { MAREY_RANGE("seen"); }
            std::thread([] { EXPECT_TRUE(marey::is_enabled()); }).join();
        }
        EXPECT_FALSE(marey::is_enabled());
        { MAREY_RANGE("hidden again"); }
    }
    EXPECT_TRUE(marey::is_enabled());
    EXPECT_EQ(calls_, (Calls{"a+seen", "a-seen"}));
}

TEST_F(Observing, AThreadThatIsSwitchedOffMayAddObserversAndStartSessions) {
    std::thread([this] {
        const marey::EnableGuard off(false);
        marey::add_thread_observer(noting(a_));
        marey::Session session(marey::SessionOptions{.threads = marey::Threads::Tasks});
        {
            const marey::EnableGuard on(true);
            MAREY_RANGE("seen");
        }
        EXPECT_EQ(session.stop().ranges().size(), 1u);
        EXPECT_FALSE(marey::is_enabled());
    }).join();
    EXPECT_EQ(calls_, (Calls{"a+seen", "a-seen"}));
}

// R26
TEST_F(Observing, ARangeThatIsOpenWhenTheThreadIsSwitchedOffStillEnds) {
    marey::Session session{marey::SessionOptions{}};
    marey::add_observer(noting(a_));
    std::optional<marey::EnableGuard> off;
    {
        MAREY_RANGE("observed");
        marey::Range movable("movable");
        off.emplace(false);
    }
    { MAREY_RANGE("hidden"); }
    off.reset();
    marey::clear_observers();
    std::optional<marey::EnableGuard> off_again;
    {
        MAREY_RANGE("recorded inline");
        off_again.emplace(false);
    }
    off_again.reset();
    const marey::Trace trace = session.stop();
    EXPECT_EQ(calls_, (Calls{"a+observed", "a+movable", "a-movable", "a-observed"}));
    std::multiset<std::string> names;
    for (marey::Row row = 0; row < trace.ranges().size(); ++row) {
        names.emplace(trace.range_name(row));
        EXPECT_EQ(trace.ranges().flags[row] & marey::kUnfinished, 0) << trace.range_name(row);
    }
    EXPECT_EQ(names, (std::multiset<std::string>{"movable", "observed", "recorded inline"}));
}

// R17 R35
TEST_F(Observing, AddingAndRemovingIsSeenByRunningThreads) {
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
    const auto handle = marey::add_observer(counting(count));
    round();
    EXPECT_EQ(count.starts, 10);
    marey::remove_observer(handle);
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
        marey::add_observer(
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
    { MAREY_RANGE("r"); }
    ASSERT_EQ(starts.size(), static_cast<std::size_t>(kMany));
    for (long i = 0; i < kMany; ++i) EXPECT_EQ(starts[static_cast<std::size_t>(i)], i);
    EXPECT_EQ(starts, ends);
}

// ---- interference ----

// R69
TEST_F(Observing, RangesThatACallbackOpensAreRecordedAndNotObserved) {
    marey::Session session{marey::SessionOptions{}};
    Count count;
    Observer observer{.start = [](const ObservedRange&, void* data) -> std::unique_ptr<ObserverContext> {
                          ++static_cast<Count*>(data)->starts;
                          MAREY_RANGE("in a callback");
                          return nullptr;
                      },
                      .data = &count};
    marey::add_observer(observer);
    { MAREY_RANGE("outer"); }
    marey::clear_observers();
    const marey::Trace trace = session.stop();
    EXPECT_EQ(count.starts, 1);
    ASSERT_EQ(trace.ranges().size(), 2u);
    EXPECT_EQ(trace.range_name(0), "in a callback");
    EXPECT_EQ(trace.range_name(1), "outer");
    EXPECT_EQ(trace.ranges().depth[1], 0u);
}

// R69
TEST_F(Observing, ACallbackMaySwitchItsOwnObserverOff) {
    struct Once {
        marey::ObserverHandle handle = 0;
        int starts = 0;
        int ends = 0;
    } once;
    const auto handle = marey::add_observer(
        {.start = [](const ObservedRange&, void* data) -> std::unique_ptr<ObserverContext> {
             auto& mine = *static_cast<Once*>(data);
             ++mine.starts;
             EXPECT_TRUE(marey::disable_observer(mine.handle));
             return nullptr;
         },
         .end = [](const ObservedRange&, ObserverContext*, void* data) { ++static_cast<Once*>(data)->ends; },
         .data = &once});
    once.handle = handle;
    { MAREY_RANGE("one"); }
    { MAREY_RANGE("two"); }
    EXPECT_EQ(once.starts, 1);
    EXPECT_EQ(once.ends, 1);  // of the range that it has seen start
    EXPECT_TRUE(marey::enable_observer(handle));
    { MAREY_RANGE("three"); }
    EXPECT_EQ(once.starts, 2);
}

// R66
TEST_F(Observing, SessionsMayStartAndStopInsideObservedRanges) {
    Count count;
    marey::add_observer(counting(count));
    for (int i = 0; i < 3; ++i) {
        std::optional<marey::Session> session;
        {
            MAREY_RANGE("begins off");
            session.emplace(marey::SessionOptions{});
            { MAREY_RANGE("inside"); }
        }
        std::optional<marey::Trace> trace;
        {
            MAREY_RANGE("ends off");
            trace = session->stop();
        }
        EXPECT_EQ(trace->ranges().size(), 2u);
    }
    EXPECT_EQ(count.starts, 9);
    EXPECT_EQ(count.ends, 9);
}

// R68
TEST_F(Observing, TwoMacrosInOneBlockDoNotCollide) {
    marey::add_observer(noting(a_));
    {
        MAREY_RANGE("one");
        MAREY_RANGE("two");
        MAREY_FUNCTION();
    }
    ASSERT_EQ(calls_.size(), 6u);
    EXPECT_EQ(calls_[1], "a+two");
}

TEST_F(Observing, TheCInterfaceIsObservedToo) {
    marey::add_observer(noting(a_));
    const marey_site site = marey_intern("from C", nullptr, 0, MAREY_SCOPE_USER);
    marey_begin(site);
    marey_begin_named("inner");
    marey_end();
    marey_end();
    EXPECT_EQ(calls_, (Calls{"a+from C", "a+inner", "a-inner", "a-from C"}));
}

}  // namespace
