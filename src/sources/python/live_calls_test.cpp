// live_calls_test.cpp: the table of suspended calls, against a map, and the numbers of calls in parts.
#include "sources/python/live_calls.h"

#include <cstdint>
#include <map>
#include <random>

#include <gtest/gtest.h>

namespace marey::python {
namespace {

const void* frame_at(std::uintptr_t address) {
    return reinterpret_cast<const void*>(address);
}

// Frames as an allocator places them: blocks of neighbours, and some far away.
TEST(LiveCalls, AreFoundWhileTheTableGrowsAndOthersAreRemoved) {
    for (std::uint32_t seed = 1; seed <= 20; ++seed) {
        std::mt19937 random(seed);
        LiveCalls calls;
        std::map<const void*, std::uint64_t> expected;
        for (int i = 0; i < 3000; ++i) {
            const std::uintptr_t block = 0x7f0000000000 + (random() % 8) * 0x2000000;
            const void* const frame = frame_at(block + random() % 100 * 128);
            if (random() % 3 != 0) {
                LiveCall* const call = calls.begin(frame);
                ASSERT_NE(call, nullptr);
                EXPECT_EQ(call->frame, frame);
                expected[frame] = call->number;
            } else if (LiveCall* const call = calls.find(frame)) {
                EXPECT_EQ(call->number, expected.at(frame));
                calls.remove(call);
                expected.erase(frame);
            }
            ASSERT_EQ(calls.size(), expected.size());
        }
        for (const auto& [frame, number] : expected) {
            ASSERT_NE(calls.find(frame), nullptr);
            EXPECT_EQ(calls.find(frame)->number, number);
        }
        std::size_t visited = 0;
        calls.visit([&](const LiveCall& call) { visited += expected.count(call.frame); });
        EXPECT_EQ(visited, expected.size());
        calls.clear();
        EXPECT_EQ(calls.size(), 0u);
        EXPECT_EQ(calls.find(expected.begin()->first), nullptr);
    }
}

TEST(LiveCalls, KeepTheirNumberFromTheFirstPartToTheLast) {
    const void* const frame = frame_at(0x7f0000001000);
    const std::uint64_t number = begin_part(frame, true, 100);
    EXPECT_NE(number, 0u);
    EXPECT_EQ(frame_of_part(100), frame);
    end_part(frame, 100, false);
    EXPECT_EQ(frame_of_part(100), nullptr) << "it is suspended";
    EXPECT_EQ(begin_part(frame, false, 200), 0u) << "not a new call";
    EXPECT_EQ(live_calls.find(frame)->number, number);
    end_part(frame, 200, true);
    EXPECT_EQ(live_calls.find(frame), nullptr);
    EXPECT_NE(begin_part(frame, true, 300), number) << "another call whose frame has the same address";
    forget_call(frame);
    EXPECT_EQ(live_calls.size(), 0u);
}

TEST(LiveCalls, WithoutAFrameAreToldApart) {
    const void* const one = new_call();
    const void* const other = new_call();
    EXPECT_NE(begin_part(one, true, 1), begin_part(other, true, 2));
    forget_call(one);
    EXPECT_EQ(frame_of_part(2), other);
    forget_call(other);
    EXPECT_EQ(live_calls.size(), 0u);
}

}  // namespace
}  // namespace marey::python
