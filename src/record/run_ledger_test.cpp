// run_ledger_test.cpp: the size limit that the processes of a tree share.
#include "record/run_ledger.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include <marey/merge.h>

namespace marey {
namespace {

class Ledger : public ::testing::Test {
  protected:
    void SetUp() override {
        if (!create_run_ledger(tree_, 1000)) GTEST_SKIP() << "this machine has no shared memory";
    }
    void TearDown() override { remove_run_ledger(tree_); }
    static std::string name() {
        char text[33];
        std::snprintf(text, sizeof text, "%032x", static_cast<unsigned>(getpid()));
        return text;
    }
    const std::string tree_ = name();
    std::string problem_;
};

TEST_F(Ledger, CountsForAllProcesses) {
    RunLedger own;
    ASSERT_TRUE(own.open(tree_, problem_));
    EXPECT_FALSE(own.would_exceed(1000));
    const pid_t child = fork();
    if (child == 0) {
        RunLedger other;
        std::string problem;
        if (!other.open(tree_, problem)) _exit(1);
        other.add(600);
        _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_TRUE(own.would_exceed(500));
    EXPECT_FALSE(own.would_exceed(400));
    own.subtract(200);
    EXPECT_FALSE(own.would_exceed(600));
}

TEST_F(Ledger, IsNotReplaced) {
    EXPECT_FALSE(create_run_ledger(tree_, 5));
}

// Each run removes the ledgers of earlier ones that were killed; a running one keeps its own.
TEST_F(Ledger, IsRemovedByTheNextRunIfItsOwnerWasKilled) {
    const std::string other = "d" + tree_.substr(1);  // of no other process that runs these tests
    const pid_t child = fork();
    if (child == 0) _exit(create_run_ledger(other, 5) ? 0 : 1);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    ASSERT_EQ(access(("/dev/shm/marey-" + other).c_str(), F_OK), 0);
    const std::string next = "f" + tree_.substr(1);
    ASSERT_TRUE(create_run_ledger(next, 5));
    EXPECT_NE(access(("/dev/shm/marey-" + other).c_str(), F_OK), 0);
    EXPECT_EQ(access(("/dev/shm/marey-" + tree_).c_str(), F_OK), 0);
    remove_run_ledger(next);
}

TEST_F(Ledger, OneThatIsDamagedIsReported) {
    const std::string path = "/dev/shm/marey-" + tree_;
    for (const std::string& content : {std::string("torn"), std::string(4096, 'x'), std::string()}) {
        std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
        RunLedger ledger;
        problem_.clear();
        EXPECT_FALSE(ledger.open(tree_, problem_));
        EXPECT_NE(problem_.find("is damaged"), std::string::npos);
    }
}

TEST_F(Ledger, OneThatDoesNotExistIsNoProblem) {
    RunLedger ledger;
    EXPECT_FALSE(ledger.open("00000000000000000000000000000000", problem_));
    EXPECT_FALSE(ledger.open("../../../tmp/x", problem_));
    EXPECT_EQ(problem_, "");
}

}  // namespace
}  // namespace marey
