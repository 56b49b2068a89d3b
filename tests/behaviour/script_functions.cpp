// script_functions.cpp: TorchScript functions that begin on one thread and are resumed, and end, on another.
#include <cstdint>
#include <optional>
#include <string_view>
#include <thread>

#include <gtest/gtest.h>
#include <marey/all.h>
#include <marey/detail/operator_path.h>

#include "support/range_lookup.h"

namespace {

class ScriptFunctions : public ::testing::Test {
  protected:
    // As the source for PyTorch does.
    void SetUp() override {
        marey::detail::set_waited_ranges([](marey::Scope scope, std::string_view name) noexcept {
            return scope == marey::Scope::ScriptFunction && name != "<forked function>";
        });
    }
    void TearDown() override { marey::detail::set_waited_ranges(nullptr); }
};

// Opens a TorchScript function, which another thread may end.
struct Script {
    explicit Script(const char* name)
        : opened(marey::detail::open_range(marey::detail::dynamic_site(name, marey::Scope::ScriptFunction),
                                           marey::Scope::ScriptFunction)) {}
    void end_elsewhere() const {
        std::thread([this] { marey::detail::close_elsewhere(opened, thread); }).join();
    }
    marey::detail::Opened opened;
    std::uint32_t thread = marey::detail::thread_number();
};

}  // namespace

TEST_F(ScriptFunctions, AFunctionThatIsResumedElsewhereNestsOnTheThreadThatWaited) {
    marey::Session session(marey::SessionOptions{});
    {
        MAREY_RANGE("around");
        const Script script("script");
        { MAREY_RANGE("child"); }
        script.end_elsewhere();
        { MAREY_RANGE("after"); }
    }
    const marey::Trace trace = session.stop();
    EXPECT_FALSE(has_flag(trace, "script", marey::kAsync));
    EXPECT_FALSE(has_flag(trace, "around", marey::kAsync));
    EXPECT_EQ(parent_name(trace, "child"), "script");
    EXPECT_EQ(parent_name(trace, "script"), "around");
    EXPECT_EQ(parent_name(trace, "after"), "around");
}

TEST_F(ScriptFunctions, AFunctionThatIsResumedElsewhereAndIsTheLastThingNestsToo) {
    marey::Session other(marey::SessionOptions{});
    marey::Session session(marey::SessionOptions{});
    const Script script("script");
    { MAREY_RANGE("child"); }
    script.end_elsewhere();
    const marey::Trace trace = session.stop();
    EXPECT_FALSE(has_flag(trace, "script", marey::kAsync));
    EXPECT_FALSE(has_flag(trace, "script", marey::kUnfinished));
    EXPECT_EQ(parent_name(trace, "child"), "script");
    { MAREY_RANGE("after"); }
    const marey::Trace longer = other.stop();
    EXPECT_EQ(longer.ranges().size(), 3u);
    EXPECT_EQ(parent_name(longer, "child"), "script");
    EXPECT_EQ(parent_name(longer, "after"), "");
}

TEST_F(ScriptFunctions, ARangeThatEndsAroundAFunctionHasWaitedForIt) {
    marey::Session session(marey::SessionOptions{});
    std::optional<Script> script;
    {
        MAREY_RANGE("around");
        script.emplace("script");
        { MAREY_RANGE("child"); }
    }
    script->end_elsewhere();  // late
    { MAREY_RANGE("after"); }
    const marey::Trace trace = session.stop();
    EXPECT_FALSE(has_flag(trace, "around", marey::kAsync));
    EXPECT_TRUE(has_flag(trace, "script", marey::kEndInferred));
    EXPECT_EQ(parent_name(trace, "child"), "script");
    EXPECT_EQ(parent_name(trace, "script"), "around");
    EXPECT_EQ(parent_name(trace, "after"), "");
    EXPECT_EQ(trace.ranges().size(), 4u);
}

TEST_F(ScriptFunctions, AForkedFunctionThatIsResumedElsewhereIsAsync) {
    marey::Session session(marey::SessionOptions{});
    const Script script("<forked function>");
    { MAREY_RANGE("another task"); }
    script.end_elsewhere();
    { MAREY_RANGE("after"); }
    const marey::Trace trace = session.stop();
    EXPECT_TRUE(has_flag(trace, "<forked function>", marey::kAsync));
    EXPECT_EQ(parent_name(trace, "another task"), "");
}

TEST_F(ScriptFunctions, AreLikeOtherRangesUnlessAFrameworkSaysThatTheyAreWaitedFor) {
    marey::detail::set_waited_ranges(nullptr);
    marey::Session session(marey::SessionOptions{});
    {
        MAREY_RANGE("around");
        const Script script("script");
        script.end_elsewhere();
        { MAREY_RANGE("after"); }
    }
    EXPECT_TRUE(has_flag(session.stop(), "script", marey::kAsync));
}
