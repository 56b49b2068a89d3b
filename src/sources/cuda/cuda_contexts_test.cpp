// cuda_contexts_test.cpp: contexts that come, are used, and go.
#include "sources/cuda/cuda_contexts.h"

#include <gtest/gtest.h>

#include <thread>

#include "sources/cuda/cuda_stand_in.h"

namespace marey::cuda {
namespace {

void* const kOwn = reinterpret_cast<void*>(std::uintptr_t{0x2000});
void* const kOther = reinterpret_cast<void*>(std::uintptr_t{0x3000});

class Contexts : public ::testing::Test {
  protected:
    Contexts() : state_(StandIn::begin()) { forget_contexts(); }
    ~Contexts() override { forget_contexts(); }

    static std::vector<void*> visited() {
        std::vector<void*> found;
        for_each_context([&](int, void* context) { found.push_back(context); });
        return found;
    }
    StandIn& state_;
};

using List = std::vector<void*>;

TEST_F(Contexts, ThePrimaryOneComesFirstAndEachOnce) {
    note_context(kOwn);
    note_context(StandIn::primary());
    note_context(kOwn);
    note_context(nullptr);
    EXPECT_EQ(visited(), (List{StandIn::primary(), kOwn}));
    state_.has_primary = false;
    EXPECT_EQ(visited(), (List{kOwn, StandIn::primary()}));  // somebody works there all the same
}

TEST_F(Contexts, WhatHasEndedOrIsForgottenIsNotTouched) {
    const std::uint32_t before = contexts_forgotten();
    note_context(kOwn);
    note_context(kOther);
    context_ends(kOwn);
    EXPECT_NE(contexts_forgotten(), before);
    EXPECT_EQ(visited(), (List{StandIn::primary(), kOther}));
    forget_contexts();
    EXPECT_EQ(visited(), (List{StandIn::primary()}));
    note_context(kOwn);  // another one at the same address
    EXPECT_EQ(visited(), (List{StandIn::primary(), kOwn}));
}

TEST_F(Contexts, OneThatIsDestroyedUnheardIsNotVisited) {
    note_context(kOwn);
    state_.destroyed.insert(kOwn);
    EXPECT_EQ(visited(), (List{StandIn::primary()}));
}

TEST_F(Contexts, TheEndOfAContextWaitsForWhoeverUsesIt) {
    note_context(kOwn);
    state_.is_hung = true;
    state_.has_primary = false;
    std::thread waiting([] { EXPECT_EQ(synchronize_contexts(), ""); });
    ASSERT_TRUE(state_.wait_until([&] { return state_.waiting_in[kOwn] != 0; }));
    std::atomic<bool> has_ended{false};
    std::thread ending([&] {
        context_ends(kOwn);
        std::lock_guard lock(state_.mutex);
        EXPECT_EQ(state_.waiting_in[kOwn], 0);
        has_ended = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // so that it could be wrong
    EXPECT_FALSE(has_ended);
    {
        std::lock_guard lock(state_.mutex);
        state_.is_hung = false;
    }
    state_.changed.notify_all();
    waiting.join();
    ending.join();
    EXPECT_TRUE(has_ended);
}

TEST_F(Contexts, OneThatIsForgottenWhileInUseIsNotUsedAgain) {
    note_context(kOwn);
    state_.has_primary = false;
    List again;
    for_each_context([&](int, void* context) {
        forget_contexts();
        again = visited();
        EXPECT_EQ(context, kOwn);
    });
    EXPECT_TRUE(again.empty());
    EXPECT_TRUE(visited().empty());
}

}  // namespace
}  // namespace marey::cuda
