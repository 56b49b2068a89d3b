// bare_fork.cpp: child processes made without fork handlers (_Fork, clone) record like any other child.
#include "support/child_run.h"

namespace {

using namespace child_run;
using Counts = std::map<std::string, int>;

class BareFork : public ChildRun, public ::testing::WithParamInterface<const char*> {
  protected:
    int run_mode(const std::string& mode, const std::string& marey) {
        return run({mode, GetParam()}, marey, MAREY_TEST_BIN_DIR "/bare_fork_program");
    }
    // Again if a thread of a parent was inside the recorder: then its child says that it is not recorded.
    int run_recorded(const std::string& mode) {
        int result = run_mode(mode, environment());
        for (int i = 0; i < 20 && contains(error(), "not recording this process"); ++i) {
            remove_files();
            result = run_mode(mode, environment());
        }
        return result;
    }
    // With the counts of the parent and of its only child.
    void expect_counts(const std::string& mode, const Counts& of_parent, const Counts& of_child) {
        const int result = run_recorded(mode);
        if (result == 77) GTEST_SKIP() << "there is no _Fork() here";
        ASSERT_EQ(result, 0) << error();
        const marey::Trace parent = marey::Trace::load(capture());
        EXPECT_EQ(counts(parent), of_parent);
        EXPECT_EQ(problem_codes(parent), "");
        EXPECT_TRUE(parent.window().finished);
        ASSERT_EQ(other_captures().size(), 1u);
        const marey::Trace child = marey::Trace::load(other_captures()[0]);
        EXPECT_EQ(counts(child), of_child);
        EXPECT_EQ(problem_codes(child), "");
        EXPECT_NE(child.processes()[0].pid, parent.processes()[0].pid);
        EXPECT_TRUE(leftover_files().empty());
        EXPECT_EQ(error(), "");
    }
};
INSTANTIATE_TEST_SUITE_P(, BareFork, ::testing::Values("_Fork", "clone"));

TEST_P(BareFork, ParentAndChildHaveTheirOwnLogs) {
    expect_counts("both", {{"work", 200'010}}, {{"child work", 200'000}});
}

TEST_P(BareFork, TheChildMayEndRangesOfItsParent) {
    expect_counts("open",
                  {{"work", 1000}, {"open", 1}, {"open with values", 1}, {"begun", 1}, {"movable", 1}},
                  {{"child work", 20}, {"movable", 1}});
}

TEST_P(BareFork, AChildThatOnlyEndsLeavesItsParentsCaptureAlone) {
    ASSERT_EQ(run_mode("silent", environment()), 0) << error();
    const marey::Trace parent = marey::Trace::load(capture());
    EXPECT_EQ(counts(parent), (Counts{{"work", 20}}));
    EXPECT_TRUE(parent.window().finished);
    EXPECT_TRUE(other_captures().empty());
}

TEST_P(BareFork, TheForkingThreadMayBeGoneInTheParent) {
    expect_counts("leave", {{"work", 160'000}, {"open", 1}}, {{"child work", 10}});
}

TEST_P(BareFork, AnyThreadOfTheChildMayRecordFirst) {
    expect_counts("threads", {{"work", 1010}}, {{"child work", 500}});
}

TEST_P(BareFork, ChildrenMayHaveChildrenOfEitherKind) {
    ASSERT_EQ(run_recorded("generations"), 0) << error();
    std::map<int, int> sizes;  // captures by their number of ranges
    for (const std::string& path : other_captures()) ++sizes[counts(marey::Trace::load(path))["child work"]];
    EXPECT_EQ(sizes, (std::map<int, int>{{1, 1}, {2, 1}, {3, 1}}));
    EXPECT_EQ(counts(marey::Trace::load(capture())), (Counts{{"work", 1}}));
}

// A child whose parent was inside the recorder records nothing.
TEST_P(BareFork, FiftyChildrenWhileThreeThreadsRecordAtFullSpeed) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "a lock of the sanitizer may be held by a thread that the child does not have";
#endif
    ASSERT_EQ(run_mode("storm", environment() + ",max=16MB,policy=ring"), 0) << error();
    EXPECT_EQ(counts(marey::Trace::load(capture())).count("child work"), 0u);
    EXPECT_GT(other_captures().size(), 0u);
    for (const std::string& path : other_captures())
        EXPECT_EQ(counts(marey::Trace::load(path)), (Counts{{"child work", 1000}})) << path;
}

TEST_P(BareFork, ASessionOfTheProgramItselfIsOverInTheChildAndContinuesInTheParent) {
    EXPECT_EQ(run_mode("session", ""), 0) << error();
}

using SharedMemory = ChildRun;

TEST_F(SharedMemory, AChildOfVforkRecordsIntoItsParentsLog) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the sanitizer replaces vfork() by fork()";
#endif
    ASSERT_EQ(run({"vfork", "vfork"}, environment(), MAREY_TEST_BIN_DIR "/bare_fork_program"), 0) << error();
    EXPECT_EQ(counts(marey::Trace::load(capture())), (Counts{{"work", 20}, {"child work", 5}}));
    EXPECT_TRUE(other_captures().empty());
}

}  // namespace
