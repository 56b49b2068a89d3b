// draining.cpp: removing an observer with the guarantee that none of its callbacks still runs.
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <marey/all.h>

namespace {

using marey::ObservedRange;
using marey::ObserverContext;

class Draining : public ::testing::Test {
  protected:
    void TearDown() override { marey::clear_observers(); }
};

// R18
TEST_F(Draining, AnObserverThatIsDrainedIsNotCalledAgainAndItsContextStillDies) {
    static bool destroyed;
    destroyed = false;
    struct Held : ObserverContext {
        ~Held() override { destroyed = true; }
    };
    static int ends = 0;
    ends = 0;
    const auto handle =
        marey::add_observer({.start = [](const ObservedRange&, void*) -> std::unique_ptr<ObserverContext> {
                                 return std::make_unique<Held>();
                             },
                             .end = [](const ObservedRange&, ObserverContext*, void*) { ++ends; }});
    {
        MAREY_RANGE("open");
        EXPECT_TRUE(marey::remove_and_drain(handle));
        EXPECT_FALSE(destroyed);
    }
    EXPECT_TRUE(destroyed);
    EXPECT_EQ(ends, 0);
}

// R18
TEST_F(Draining, WaitsForACallbackThatRuns) {
    static std::atomic<bool> entered{false};
    static std::atomic<bool> may_leave{false};
    static std::atomic<bool> left{false};
    const auto handle =
        marey::add_observer({.start = [](const ObservedRange&, void*) -> std::unique_ptr<ObserverContext> {
            entered = true;
            while (!may_leave) std::this_thread::yield();
            left = true;
            return nullptr;
        }});
    std::thread busy([] { MAREY_RANGE("slow"); });
    while (!entered) std::this_thread::yield();
    std::thread releases([] { may_leave = true; });
    marey::remove_and_drain(handle);
    EXPECT_TRUE(left);
    busy.join();
    releases.join();
}

TEST_F(Draining, WaitsForACallbackThatHasEndedAnotherObservedRange) {
    static std::atomic<bool> entered{false};
    static std::atomic<bool> may_leave{false};
    static std::atomic<bool> left{false};
    static std::atomic<int> inner_ends{0};
    static marey::Range range;
    const auto inner =
        marey::add_observer({.end = [](const ObservedRange&, ObserverContext*, void*) { ++inner_ends; }});
    range = marey::Range("ends in a callback");
    EXPECT_TRUE(marey::remove_observer(inner));
    const auto handle =
        marey::add_observer({.start = [](const ObservedRange&, void*) -> std::unique_ptr<ObserverContext> {
            range.end();
            entered = true;
            while (!may_leave) std::this_thread::yield();
            left = true;
            return nullptr;
        }});
    std::thread busy([] { MAREY_RANGE("slow"); });
    while (!entered) std::this_thread::yield();
    std::thread releases([] {
        for (int i = 0; i < 1000; ++i) std::this_thread::yield();
        may_leave = true;
    });
    marey::remove_and_drain(handle);
    EXPECT_TRUE(left);
    busy.join();
    releases.join();
    EXPECT_EQ(inner_ends, 1);
}

TEST_F(Draining, FromACallbackIsAnError) {
    static std::string error;
    static marey::ObserverHandle handle;
    error.clear();
    handle =
        marey::add_observer({.start = [](const ObservedRange&, void*) -> std::unique_ptr<ObserverContext> {
            try {
                marey::remove_and_drain(handle);
            } catch (const marey::Error& caught) {
                error = caught.what();
            }
            return nullptr;
        }});
    { MAREY_RANGE("r"); }
    EXPECT_NE(error.find("callback"), std::string::npos);
    EXPECT_TRUE(marey::remove_observer(handle));
}

TEST_F(Draining, ACallbackIsRecognisedOnAThreadThatHasDoneNothingElse) {
    static int ends = 0;
    static marey::ObserverHandle handle = 0;
    ends = 0;
    handle = marey::add_observer({.end = [](const ObservedRange&, ObserverContext*, void*) {
        ++ends;
        { MAREY_RANGE("not observed"); }
        EXPECT_THROW(marey::remove_and_drain(handle), marey::Error);
        { MAREY_RANGE("nor this"); }
    }});
    marey::Range range("moves");
    std::thread([&] {
        range.end();
        EXPECT_EQ(ends, 1);
        marey::Range("observed").end();
        EXPECT_EQ(ends, 2);
    }).join();
}

TEST_F(Draining, ReachesAnObserverThatOnlyACapturedContextStillHas) {
    static int calls = 0;
    calls = 0;
    const auto handle = marey::add_thread_observer(
        {.start = [](const ObservedRange&, void*) -> std::unique_ptr<ObserverContext> {
            ++calls;
            return nullptr;
        }});
    const auto task = marey::propagate([] { MAREY_RANGE("in a task"); });
    task();
    EXPECT_EQ(calls, 1);
    marey::clear_observers();
    task();
    EXPECT_EQ(calls, 1) << "a removed observer is not called";
    EXPECT_TRUE(marey::remove_and_drain(handle));
}

}  // namespace
