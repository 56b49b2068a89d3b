// pushed_ranges_test.cpp: each pop ends the right range.
#include "emitters/pushed_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>
#include <vector>

namespace marey {
namespace {

/// A tool that keeps one stack. A test uses it on one thread unless noted.
class StackTool final : public AnnotationBackend {
  public:
    StackTool() : AnnotationBackend(0) {}
    const std::string& unavailable() noexcept override { return none_; }
    int push(const std::string& name, const std::string&) override {
        if (!is_on) return kNotTaken;
        stack.push_back(name);
        return -1;
    }
    int pop() override {
        EXPECT_FALSE(stack.empty());
        if (!stack.empty()) stack.pop_back();
        return -1;
    }
    std::uint64_t begin(const std::string&, const std::string&) override { return 0; }
    void end(std::uint64_t) override {}
    void mark(const std::string&) override {}

    std::vector<std::string> stack;
    bool is_on = true;

  private:
    std::string none_;
};

using Stack = std::vector<std::string>;

TEST(PushedRanges, ARangeThatEndsBeforeItsInnerRangesWaits) {
    StackTool tool;
    PushedRange* const a = push_emitted(tool, 1, "a", "a");
    PushedRange* const b = push_emitted(tool, 1, "b", "b");
    end_emitted(tool, a);
    EXPECT_EQ(tool.stack, (Stack{"a", "b"}));
    end_emitted(tool, b);
    EXPECT_EQ(tool.stack, Stack{});
}

TEST(PushedRanges, RangesThatTheToolDidNotTakeAreNotPopped) {
    StackTool tool;
    PushedRange* const a = push_emitted(tool, 1, "a", "a");
    tool.is_on = false;
    PushedRange* const b = push_emitted(tool, 1, "b", "b");
    tool.is_on = true;
    PushedRange* const c = push_emitted(tool, 1, "c", "c");
    EXPECT_EQ(tool.stack, (Stack{"a", "c"}));
    end_emitted(tool, c);
    end_emitted(tool, b);
    EXPECT_EQ(tool.stack, Stack{"a"});
    end_emitted(tool, a);
    EXPECT_EQ(tool.stack, Stack{});
}

TEST(PushedRanges, ARangeThatEndsOnAnotherThreadIsPoppedByItsOwnThread) {
    StackTool tool;
    PushedRange* const a = push_emitted(tool, 1, "a", "a");
    std::thread([&] { end_emitted(tool, a); }).join();
    EXPECT_EQ(tool.stack, Stack{"a"});
    PushedRange* const b = push_emitted(tool, 1, "b", "b");
    EXPECT_EQ(tool.stack, Stack{"b"});
    end_emitted(tool, b);
    EXPECT_EQ(tool.stack, Stack{});
}

TEST(PushedRanges, MayOutliveTheirThread) {
    StackTool tool;
    PushedRange* range = nullptr;
    std::thread([&] { range = push_emitted(tool, 1, "a", "a"); }).join();
    end_emitted(tool, range);
    EXPECT_EQ(tool.stack, Stack{"a"});
}

// L15
TEST(PushedRanges, TheEndOfARunPopsItsRangesAndLeavesTheRest) {
    StackTool tool;
    EXPECT_EQ(push_manual(tool, "outer"), 0);
    PushedRange* const a = push_emitted(tool, 1, "a", "a");
    EXPECT_EQ(push_manual(tool, "inner"), 2);
    PushedRange* const b = push_emitted(tool, 1, "b", "b");
    end_run(tool, 2);
    EXPECT_EQ(tool.stack, (Stack{"outer", "a", "inner", "b"}));
    end_run(tool, 1);
    EXPECT_EQ(tool.stack, (Stack{"outer", "a", "inner"}));
    EXPECT_EQ(pop_manual(tool), 2);
    EXPECT_EQ(tool.stack, Stack{"outer"});
    end_emitted(tool, b);
    end_emitted(tool, a);
    EXPECT_EQ(tool.stack, Stack{"outer"});
    EXPECT_EQ(pop_manual(tool), 0);
    EXPECT_EQ(pop_manual(tool), -1);
}

// L15
// In any order, there are as many pops as pushes, and an open range is never popped.
TEST(PushedRanges, StayBalancedUnderRandomOrders) {
    std::mt19937 random(7);
    for (int round = 0; round < 200; ++round) {
        StackTool tool;
        std::vector<std::pair<std::string, PushedRange*>> open;
        std::vector<std::string> hand;
        for (int i = 0; i < 60; ++i) {
            const std::string name = std::to_string(i);
            switch (random() % 4) {
                case 0:
                    open.emplace_back(name, push_emitted(tool, 1, name, name));
                    break;
                case 1:
                    push_manual(tool, name);
                    hand.push_back(name);
                    break;
                case 2:
                    if (!open.empty()) {
                        const std::size_t at = random() % open.size();
                        end_emitted(tool, open[at].second);
                        open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
                    }
                    break;
                default:
                    EXPECT_EQ(pop_manual(tool) >= 0, !hand.empty());
                    if (!hand.empty()) hand.pop_back();
            }
            for (const auto& [open_name, range] : open)
                EXPECT_EQ(std::count(tool.stack.begin(), tool.stack.end(), open_name), 1);
            for (const std::string& open_name : hand)
                EXPECT_EQ(std::count(tool.stack.begin(), tool.stack.end(), open_name), 1);
        }
        for (const auto& [open_name, range] : open) end_emitted(tool, range);
        while (pop_manual(tool) >= 0) {
        }
        EXPECT_TRUE(tool.stack.empty());
    }
}

}  // namespace
}  // namespace marey
