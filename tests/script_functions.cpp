// script_functions.cpp: functions of TorchScript that begin on one thread and are resumed, and end, on
// another.
#include <cstdint>
#include <optional>
#include <thread>

#include <gtest/gtest.h>
#include <kymo/kymo.h>

#include "range_lookup.h"

namespace {

// Opens a function of TorchScript, which another thread may end.
struct Script {
    explicit Script(const char* name)
        : opened(kymo::detail::open_range(kymo::detail::dynamic_site(name, kymo::Scope::ScriptFunction),
                                          kymo::Scope::ScriptFunction)) {}
    void end_elsewhere() const {
        std::thread([this] { kymo::detail::close_elsewhere(opened, thread); }).join();
    }
    kymo::detail::Opened opened;
    std::uint32_t thread = kymo::detail::thread_number();
};

}  // namespace

TEST(ScriptFunctions, AFunctionThatIsResumedElsewhereNestsOnTheThreadThatWaited) {
    kymo::Session session(kymo::SessionOptions{});
    {
        KYMO_RANGE("around");
        const Script script("script");
        { KYMO_RANGE("child"); }
        script.end_elsewhere();
        { KYMO_RANGE("behind"); }
    }
    const kymo::Trace trace = session.stop();
    EXPECT_FALSE(has_flag(trace, "script", kymo::kAsync));
    EXPECT_FALSE(has_flag(trace, "around", kymo::kAsync));
    EXPECT_EQ(parent_name(trace, "child"), "script");
    EXPECT_EQ(parent_name(trace, "script"), "around");
    EXPECT_EQ(parent_name(trace, "behind"), "around");
}

TEST(ScriptFunctions, AFunctionThatIsResumedElsewhereAndIsTheLastThingNestsToo) {
    kymo::Session other(kymo::SessionOptions{});
    kymo::Session session(kymo::SessionOptions{});
    const Script script("script");
    { KYMO_RANGE("child"); }
    script.end_elsewhere();
    const kymo::Trace trace = session.stop();
    EXPECT_FALSE(has_flag(trace, "script", kymo::kAsync));
    EXPECT_FALSE(has_flag(trace, "script", kymo::kUnfinished));
    EXPECT_EQ(parent_name(trace, "child"), "script");
    { KYMO_RANGE("behind"); }
    const kymo::Trace longer = other.stop();
    EXPECT_EQ(longer.ranges().size(), 3u);
    EXPECT_EQ(parent_name(longer, "child"), "script");
    EXPECT_EQ(parent_name(longer, "behind"), "");
}

TEST(ScriptFunctions, WhatEndsAroundAFunctionHasWaitedForIt) {
    kymo::Session session(kymo::SessionOptions{});
    std::optional<Script> script;
    {
        KYMO_RANGE("around");
        script.emplace("script");
        { KYMO_RANGE("child"); }
    }
    script->end_elsewhere();  // late
    { KYMO_RANGE("behind"); }
    const kymo::Trace trace = session.stop();
    EXPECT_FALSE(has_flag(trace, "around", kymo::kAsync));
    EXPECT_TRUE(has_flag(trace, "script", kymo::kEndInferred));
    EXPECT_EQ(parent_name(trace, "child"), "script");
    EXPECT_EQ(parent_name(trace, "script"), "around");
    EXPECT_EQ(parent_name(trace, "behind"), "");
    EXPECT_EQ(trace.ranges().size(), 4u);
}

TEST(ScriptFunctions, AForkedFunctionThatIsResumedElsewhereIsAsync) {
    kymo::Session session(kymo::SessionOptions{});
    const Script script("<forked function>");
    { KYMO_RANGE("another task"); }
    script.end_elsewhere();
    { KYMO_RANGE("behind"); }
    const kymo::Trace trace = session.stop();
    EXPECT_TRUE(has_flag(trace, "<forked function>", kymo::kAsync));
    EXPECT_EQ(parent_name(trace, "another task"), "");
}
