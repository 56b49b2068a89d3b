// range_state_test.cpp: the ranges of with statements, recorded by real sessions, without an interpreter.
#include "bindings/range_state.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <marey/all.h>

extern "C" PyObject* PyErr_NoMemory() {
    ADD_FAILURE() << "out of memory";
    return nullptr;
}

namespace marey::bindings {
namespace {

class WithStatement : public ::testing::Test {
  protected:
    WithStatement() { state_.init(); }
    static void open(RangeState& state, const char* name) {
        ASSERT_TRUE(state.enter());
        if (detail::should_record(Scope::User))
            state.open(detail::dynamic_site(name, Scope::User), Scope::User);
    }
    static void take(RangeState& state, const char* name) {
        ASSERT_TRUE(state.enter());
        auto operation = std::make_unique<Operation>(Scope::User);
        operation->begin(name);
        state.take(std::move(operation));
    }
    /// Names of the ranges in the order of the trace, each with the name of the range around it, and a
    /// mark if it has no end or is async.
    static std::vector<std::string> found(const Trace& trace) {
        std::vector<std::string> names;
        for (Row row = 0; row < trace.ranges().size(); ++row) {
            const Row around = trace.ranges().parent[row];
            std::string text(trace.range_name(row));
            if (around != kNoRow) text += " in " + std::string(trace.range_name(around));
            if ((trace.ranges().flags[row] & kUnfinished) != 0) text += " (open)";
            if ((trace.ranges().flags[row] & kAsync) != 0) text += " (async)";
            names.push_back(text);
        }
        return names;
    }

    Session session_{SessionOptions{}};
    RangeState state_;
};
using Names = std::vector<std::string>;

TEST_F(WithStatement, AnObjectEnteredAgainEndsItsInnermostRangeFirst) {
    open(state_, "a");
    take(state_, "b");
    open(state_, "c");
    state_.leave();
    EXPECT_TRUE(state_.is_entered());
    open(state_, "d");
    state_.leave();
    state_.leave();
    open(state_, "e");
    state_.leave();
    state_.leave();
    EXPECT_FALSE(state_.is_entered());
    EXPECT_EQ(found(session_.stop()), (Names{"a", "b in a", "c in b", "d in b", "e in a"}));
}

TEST_F(WithStatement, EntriesThatAreNotRecordedEndNothing) {
    open(state_, "a");
    ASSERT_TRUE(state_.enter());
    state_.leave();
    open(state_, "b");
    state_.leave();
    state_.leave();
    EXPECT_FALSE(state_.is_entered());
    EXPECT_EQ(found(session_.stop()), (Names{"a", "b in a"}));
    open(state_, "after the session");
    state_.leave();
    EXPECT_FALSE(state_.is_entered());
}

TEST_F(WithStatement, ReleaseEndsEveryRange) {
    open(state_, "a");
    take(state_, "b");
    open(state_, "c");
    state_.release();
    EXPECT_FALSE(state_.is_entered());
    open(state_, "d");
    state_.release();
    EXPECT_EQ(found(session_.stop()), (Names{"a", "b in a", "c in b", "d"}));
}

TEST_F(WithStatement, ARangeThatEndsOnAnotherThreadIsAsync) {
    open(state_, "a");
    std::thread([this] { state_.leave(); }).join();
    EXPECT_FALSE(state_.is_entered());
    open(state_, "b");
    state_.leave();
    EXPECT_EQ(found(session_.stop()), (Names{"b", "a (async)"}));
}

TEST_F(WithStatement, ATransferredRangeOutlivesItsBlock) {
    open(state_, "a");
    for (const bool has_values : {false, true}) {
        (has_values ? take : open)(state_, has_values ? "values" : "plain");
        EXPECT_FALSE(state_.is_transferred());
        RangeState other;
        state_.move_to_range(other);
        EXPECT_TRUE(state_.is_transferred());
        EXPECT_TRUE(other.is_entered());
        state_.leave();
        EXPECT_FALSE(state_.is_transferred()) << "that of the outer entry";
        open(state_, "inside");
        state_.leave();
        other.leave();
        EXPECT_FALSE(other.is_entered());
    }
    state_.leave();
    EXPECT_EQ(found(session_.stop()),
              (Names{"a", "plain in a", "inside in plain", "values in a", "inside in values"}));
}

TEST_F(WithStatement, AnOuterEntryStaysTransferredWhileAnInnerOneRuns) {
    open(state_, "a");
    RangeState other;
    state_.move_to_range(other);
    open(state_, "b");
    EXPECT_FALSE(state_.is_transferred());
    state_.leave();
    EXPECT_TRUE(state_.is_transferred());
    state_.leave();
    EXPECT_FALSE(state_.is_transferred());
    other.release();
    EXPECT_EQ(found(session_.stop()), (Names{"a", "b in a"}));
}

TEST_F(WithStatement, StartIsThatOfTheInnermostRange) {
    ASSERT_TRUE(state_.enter());
    EXPECT_EQ(state_.start(), 0u);
    state_.leave();
    open(state_, "a");
    const std::uint64_t first = state_.start();
    take(state_, "b");
    EXPECT_GT(first, 0u);
    EXPECT_GT(state_.start(), first);
    state_.leave();
    EXPECT_EQ(state_.start(), first);
    std::thread([this] { EXPECT_EQ(state_.start(), 0u); }).join();
    state_.leave();
}

TEST(CachedSite, IsForgottenWhenTheNumbersOfNamesChange) {
    const Session session{SessionOptions{}};
    CachedSite kept;
    EXPECT_EQ(kept.get(), 0u);
    kept.set(detail::dynamic_site("kept", Scope::User));
    EXPECT_EQ(kept.get(), detail::dynamic_site("kept", Scope::User));
    ++detail::current_thread->names_number;
    EXPECT_EQ(kept.get(), 0u);
    --detail::current_thread->names_number;
}

}  // namespace
}  // namespace marey::bindings
