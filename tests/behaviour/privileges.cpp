// privileges.cpp: set-uid programs ignore the environment, only its owner can read a capture, links of other
// users are not followed, and threads that give up rights are not recorded any more.
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <marey/process_end.h>

#include "support/child_run.h"

namespace {

using namespace child_run;

// Every program is started with this umask, so that it does not hide the modes of new files.
class Privileges : public ChildRun {
  protected:
    void before_exec() override {
        umask(0);
        if (user_ != 0 && (setgid(user_) != 0 || setuid(user_) != 0)) _exit(126);
    }
    unsigned mode_of(const std::string& path) const {
        struct stat status {};
        return stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
    }

    uid_t user_ = 0;  ///< not 0: the program is started by this user
};

TEST_F(Privileges, OnlyItsOwnerCanReadACapture) {
    ASSERT_EQ(run({"work", "10"}, environment()), 0) << error();
    EXPECT_EQ(mode_of(capture()), 0600u);
    marey::compact_capture(capture(), folder_ + "/packed.marey");
    EXPECT_EQ(mode_of(folder_ + "/packed.marey"), 0600u);
}

TEST_F(Privileges, OnlyItsOwnerCanReadACaptureThatIsCutOutOfAnother) {
    marey::SessionOptions options;
    options.output = capture();
    const mode_t mask = umask(0);
    marey::Session first(options);
    options.output = folder_ + "/second.marey";
    marey::Session second(options);
    first.discard();
    second.discard();
    umask(mask);
    EXPECT_EQ(mode_of(capture()), 0600u);
    EXPECT_EQ(mode_of(options.output), 0600u);
}

// A set-uid program that belongs to root, started by another user who would like a file in a folder of root.
TEST_F(Privileges, ASetUidProgramIgnoresTheEnvironment) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the sanitizers read variables that set-uid programs ignore";
#endif
    struct statvfs mount {};
    ASSERT_EQ(statvfs(folder_.c_str(), &mount), 0);
    if (geteuid() != 0) GTEST_SKIP() << "only root can start programs as another user";
    if ((mount.f_flag & ST_NOSUID) != 0) GTEST_SKIP() << folder_ << " is mounted with nosuid";
    user_ = 65534;
    const std::string program = folder_ + "/program";
    std::filesystem::copy_file(MAREY_TEST_BIN_DIR "/lifecycle_program", program);
    ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);  // an ordinary program records
    if (run({"work", "10"}, environment(), program) == 127)
        GTEST_SKIP() << "other users cannot load libmarey.so from the build folder: " << error();
    EXPECT_EQ(counts(marey::Trace::load(capture())).at("work"), 10);

    std::filesystem::remove(capture());
    ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
    ASSERT_EQ(chmod(program.c_str(), 04755), 0);
    EXPECT_EQ(run({"work", "10"}, environment(), program), 0) << error();
    EXPECT_EQ(out(), "done\n");
    EXPECT_EQ(error(), "");
    EXPECT_FALSE(std::filesystem::exists(capture()));
    EXPECT_TRUE(other_captures().empty());
}

// In a folder that everybody may write to. Without the sticky bit, the kernel follows links there even if
// fs.protected_symlinks is 1.
TEST_F(Privileges, ACaptureIsNotWrittenThroughALinkOfAnotherUser) {
    ASSERT_EQ(chmod(folder_.c_str(), 0777), 0);
    const std::string own = folder_ + "/own";
    ASSERT_TRUE(std::filesystem::create_directory(own));
    std::ofstream(own + "/file") << "mine";
    const std::vector<std::string> targets = {own + "/file", own + "/new"};  // one exists, the other does not
    for (const std::string& target : targets) {
        SCOPED_TRACE(target);
        ASSERT_EQ(symlink(target.c_str(), capture().c_str()), 0);
        if (geteuid() == 0) {
            ASSERT_EQ(lchown(capture().c_str(), 65534, 65534), 0);
        }
        ASSERT_EQ(run({"work", "10"}, environment()), 0) << error();
        EXPECT_EQ(text_of(own + "/file"), "mine");
        EXPECT_FALSE(std::filesystem::exists(own + "/new"));
        EXPECT_TRUE(std::filesystem::is_symlink(capture()));
        ASSERT_EQ(other_captures().size(), 1u);
        EXPECT_EQ(counts(marey::Trace::load(other_captures()[0])).at("work"), 10);
        EXPECT_FALSE(marey::append_process_end(other_captures()[0], pid_ + 1, {}));

        // The capture itself is replaced by a link while something is still to be appended to it.
        std::filesystem::rename(other_captures()[0], own + "/moved");
        std::filesystem::create_symlink(own + "/moved", folder_ + "/app.link.marey");
        const auto length = std::filesystem::file_size(own + "/moved");
        EXPECT_THROW(marey::append_process_end(folder_ + "/app.link.marey", pid_, {}), marey::Error);
        EXPECT_EQ(std::filesystem::file_size(own + "/moved"), length);
        std::filesystem::remove(folder_ + "/app.link.marey");
        std::filesystem::remove(capture());
    }
}

// The processor's counter may not be read any more, and nearly every system call ends the program.
TEST_F(Privileges, AThreadThatGivesUpReadingTheCounterIsNotRecordedAnyMore) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the sanitizers make system calls of their own";
#endif
    for (const char* const how : {"seccomp", "tsc"}) {
        SCOPED_TRACE(how);
        const int result = run({how}, environment(), MAREY_TEST_BIN_DIR "/restricted_program");
        if (result == 77) continue;  // not supported here: PR_SET_TSC is a call of x86
        ASSERT_EQ(result, 0) << error();
        EXPECT_EQ(out(), "done\n");
        const marey::Trace trace = marey::Trace::load(capture());
        EXPECT_EQ(counts(trace), (std::map<std::string, int>{{"work", 10}, {"around", 1}}));
        EXPECT_TRUE(has_problem(trace, "thread_restricted"));
        std::filesystem::remove(capture());
    }
}

}  // namespace
