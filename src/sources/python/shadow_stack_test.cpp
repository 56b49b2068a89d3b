// shadow_stack_test.cpp: calls whose returns come in any order, recorded by real sessions.
#include "sources/python/shadow_stack.h"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <marey/all.h>

namespace marey::python {

CallFilter call_filter;  // that of call_filter.cpp, which needs an interpreter
void end_budget() noexcept {}

namespace {

class Stack : public ::testing::Test {
  protected:
    static std::uint32_t site(const std::string& name) {
        return traced_site(name, "program.py", 1, Scope::PythonFunction);
    }
    /// Keys are addresses of frames, whose lowest bits are zero.
    static std::uintptr_t key(std::uintptr_t number) { return number << 6; }
    void open(std::uintptr_t number, const std::string& name) {
        const std::uint32_t at = site(name);
        if (stack_.try_open(detail::current_thread, key(number), at, Scope::PythonFunction) == 0)
            stack_.open(key(number), at, Scope::PythonFunction);
    }
    bool close(std::uintptr_t number) {
        return stack_.try_close(detail::current_thread, key(number)) || stack_.close(key(number), [] {
            return EndingPart{nullptr, true};
        });
    }
    /// Names of finished ranges, in the order of their starts, each with the name of the range around it.
    static std::vector<std::string> found(const Trace& trace) {
        std::vector<std::string> names;
        for (Row row = 0; row < trace.ranges().size(); ++row) {
            const Row around = trace.ranges().parent[row];
            std::string text(trace.range_name(row));
            if (around != kNoRow) text += " in " + std::string(trace.range_name(around));
            names.push_back(text);
        }
        return names;
    }

    Session session_{SessionOptions{.scopes = {Scope::PythonFunction}, .with_stack = true}};
    ShadowStack stack_;
};

TEST_F(Stack, NestsCallsDeeperThanTheRecordersOwnStack) {
    constexpr std::uintptr_t kDeep = 3 * detail::kInlineDepth;
    for (std::uintptr_t i = 1; i <= kDeep; ++i) open(i, "f");
    EXPECT_TRUE(stack_.holds(key(1)));
    EXPECT_TRUE(stack_.holds(key(kDeep)));
    for (std::uintptr_t i = kDeep; i != 0; --i) EXPECT_TRUE(close(i)) << i;
    EXPECT_TRUE(stack_.is_empty());
    const Trace trace = session_.stop();
    EXPECT_EQ(trace.ranges().size(), kDeep);
    EXPECT_TRUE(trace.problems().empty());
}

TEST_F(Stack, ReturnsOfUnknownCallsChangeNothing) {
    open(1, "f");
    EXPECT_FALSE(close(2)) << "a call that began before tracing";
    EXPECT_TRUE(stack_.holds(key(1)));
    EXPECT_TRUE(close(1));
    EXPECT_FALSE(close(1));
    EXPECT_EQ(found(session_.stop()), std::vector<std::string>{"f"});
}

TEST_F(Stack, CallsThatAreNotRecordedEndWithTheirOwnReturn) {
    open(1, "outer");
    stack_.skip(key(2));
    open(3, "inner");
    EXPECT_TRUE(close(3));
    EXPECT_TRUE(close(2));
    EXPECT_TRUE(close(1));
    EXPECT_TRUE(stack_.is_empty());
    EXPECT_EQ(found(session_.stop()), (std::vector<std::string>{"outer", "inner in outer"}));
}

TEST_F(Stack, TheInnermostOfTwoCallsWithOneKeyReturnsFirst) {
    for (int i = 0; i < 2; ++i) {  // the first range of a thread takes another path
        open(1, "f");
        stack_.skip(key(1));  // as a recursive call, where keys are those of the code
        EXPECT_TRUE(close(1));
        open(2, "g");
        EXPECT_TRUE(close(2));
        EXPECT_TRUE(close(1));
        EXPECT_TRUE(stack_.is_empty());
    }
    EXPECT_EQ(found(session_.stop()), (std::vector<std::string>{"f", "g in f", "f", "g in f"}));
}

TEST_F(Stack, AnOuterCallMayReturnFirst) {
    open(1, "left");  // by a greenlet that was switched away from
    open(2, "f");
    EXPECT_TRUE(close(1));
    open(3, "g");
    EXPECT_TRUE(close(3));
    EXPECT_TRUE(close(2));
    EXPECT_TRUE(stack_.is_empty());
    EXPECT_EQ(session_.stop().ranges().size(), 3u);
}

TEST_F(Stack, SuspendedCallsContinueAsPartsOfTheSameCalls) {
    open(1, "f");
    open(2, "g");
    const ShadowStack::Suspended calls = stack_.suspend();
    ASSERT_EQ(calls.size(), 2u);
    EXPECT_TRUE(stack_.is_empty());
    open(3, "elsewhere");
    EXPECT_TRUE(close(3));
    stack_.resume(calls);
    EXPECT_TRUE(close(2));
    EXPECT_TRUE(close(1));
    EXPECT_TRUE(stack_.is_empty());
    EXPECT_EQ(live_calls.size(), 0u);
    const Trace trace = session_.stop();
    EXPECT_EQ(found(trace), (std::vector<std::string>{"f", "g in f", "elsewhere", "f", "g in f"}));
    const auto call_of = [&](Row row) {
        return trace.range_detail(row) != nullptr ? trace.range_detail(row)->call : 0;
    };
    EXPECT_NE(call_of(0), 0u);
    EXPECT_NE(call_of(0), call_of(1));
    EXPECT_EQ(call_of(0), call_of(3));
    EXPECT_EQ(call_of(1), call_of(4));
    EXPECT_EQ(call_of(2), 0u);
}

TEST_F(Stack, CallsIntoCAreForgottenWhenTheirEndsWillNotBeSeen) {
    open(1, "f");
    stack_.open(CallKey::c(reinterpret_cast<const void*>(key(1))), site("sorted"), Scope::PythonFunction);
    stack_.forget_c_calls(detail::thread_number());
    EXPECT_TRUE(stack_.holds(key(1)));
    EXPECT_TRUE(close(1));
    EXPECT_TRUE(stack_.is_empty());
    EXPECT_EQ(session_.stop().ranges().size(), 2u);
}

}  // namespace
}  // namespace marey::python
