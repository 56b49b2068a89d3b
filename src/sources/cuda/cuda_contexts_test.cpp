// cuda_contexts_test.cpp: contexts that are created, used and destroyed.
#include "sources/cuda/cuda_contexts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "sources/cuda/fake_cuda_fixture.h"

namespace marey::cuda {
namespace {

void* const kUserContext = reinterpret_cast<void*>(std::uintptr_t{0x2000});
void* const kOther = reinterpret_cast<void*>(std::uintptr_t{0x3000});

class Contexts : public ::testing::Test {
  protected:
    Contexts() : state_(FakeCuda::begin()) { forget_contexts(); }
    ~Contexts() override { forget_contexts(); }

    static std::vector<void*> visited() {
        std::vector<void*> found;
        for_each_context([&](int, void* context) { found.push_back(context); });
        return found;
    }
    FakeCuda& state_;
};

using List = std::vector<void*>;

TEST_F(Contexts, ThePrimaryContextComesFirstAndEachIsVisitedOnce) {
    note_context(kUserContext);
    note_context(FakeCuda::primary());
    note_context(kUserContext);
    note_context(nullptr);
    EXPECT_EQ(visited(), (List{FakeCuda::primary(), kUserContext}));
    state_.has_primary = false;
    EXPECT_EQ(visited(), (List{kUserContext, FakeCuda::primary()}));  // calls were seen in it anyway
}

TEST_F(Contexts, EndedAndForgottenContextsAreNotTouched) {
    const std::uint32_t before = contexts_forgotten();
    note_context(kUserContext);
    note_context(kOther);
    context_ends(kUserContext);
    EXPECT_NE(contexts_forgotten(), before);
    EXPECT_EQ(visited(), (List{FakeCuda::primary(), kOther}));
    forget_contexts();
    EXPECT_EQ(visited(), (List{FakeCuda::primary()}));
    note_context(kUserContext);  // another one at the same address
    EXPECT_EQ(visited(), (List{FakeCuda::primary(), kUserContext}));
}

TEST_F(Contexts, AContextDestroyedWithoutNoticeIsNotVisited) {
    note_context(kUserContext);
    state_.destroyed.insert(kUserContext);
    EXPECT_EQ(visited(), (List{FakeCuda::primary()}));
}

/// Whether a thread of this process waits for something.
bool is_asleep(pid_t thread) {
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    return text.find(") S ") != std::string::npos;
}

TEST_F(Contexts, TheEndOfAContextWaitsForItsUsers) {
    note_context(kUserContext);
    state_.is_hung = true;
    state_.has_primary = false;
    std::thread waiting([] { EXPECT_EQ(synchronize_contexts(), ""); });
    ASSERT_TRUE(state_.wait_until([&] { return state_.waiting_in[kUserContext] != 0; }));
    std::atomic<bool> has_ended{false};
    std::atomic<pid_t> ending_id{0};
    std::thread ending([&] {
        ending_id = ::gettid();
        context_ends(kUserContext);
        std::lock_guard lock(state_.mutex);
        EXPECT_EQ(state_.waiting_in[kUserContext], 0);
        has_ended = true;
    });
    while (!has_ended && !is_asleep(ending_id)) std::this_thread::yield();
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

TEST_F(Contexts, AContextForgottenWhileInUseIsNotUsedAgain) {
    note_context(kUserContext);
    state_.has_primary = false;
    List again;
    for_each_context([&](int, void* context) {
        forget_contexts();
        again = visited();
        EXPECT_EQ(context, kUserContext);
    });
    EXPECT_TRUE(again.empty());
    EXPECT_TRUE(visited().empty());
}

}  // namespace
}  // namespace marey::cuda
