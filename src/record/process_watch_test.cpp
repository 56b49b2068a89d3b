// process_watch_test.cpp: how the processes of a tree ended, as the command that started it learns it.
#include <marey/process_end.h>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <functional>

#include "record/process_report.h"

namespace marey {
namespace {

class Watch : public ::testing::Test {
  protected:
    void SetUp() override {
        if (::access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "this machine has no shared memory";
    }
    static std::string name() {
        char text[33];
        std::snprintf(text, sizeof text, "e%031x", static_cast<unsigned>(getpid()));
        return text;
    }
    /// Earlier kernels tell only a parent how a process ended.
    static bool kernel_tells() {
        utsname system{};
        int major = 0, minor = 0;
        return uname(&system) == 0 && std::sscanf(system.release, "%d.%d", &major, &minor) == 2 &&
               (major > 6 || (major == 6 && minor >= 15));
    }
    std::string make_capture(const std::string& suffix) const {
        std::string path = ::testing::TempDir() + tree_ + suffix;
        std::ofstream(path) << "capture";
        return path;
    }
    void report(const std::string& capture) const {
        const ScopedLock lock(recorder_mutex);
        report_process(tree_, capture);
    }
    /// A process that reports itself and then does something.
    pid_t start(const std::string& capture, const std::function<void()>& work) const {
        const pid_t child = fork();
        if (child != 0) return child;
        report(capture);
        work();
        _exit(99);
    }

    const std::string tree_ = name();
    ProcessWatch watch_{tree_};
};

TEST_F(Watch, KnowsHowAProcessEndedThatItsParentWaitedFor) {
    if (!kernel_tells()) GTEST_SKIP() << "needs Linux 6.15";
    const std::string killed = make_capture("killed"), left = make_capture("left");
    waitpid(start(killed, [] { raise(SIGKILL); }), nullptr, 0);
    waitpid(start(left, [] { _exit(7); }), nullptr, 0);
    watch_.update();
    ASSERT_TRUE(watch_.find(killed).end && watch_.find(left).end);
    EXPECT_TRUE(watch_.find(killed).has_ended);
    EXPECT_EQ(watch_.find(killed).end->signal, SIGKILL);
    EXPECT_EQ(watch_.find(left).end->signal, 0);
    EXPECT_EQ(watch_.find(left).end->exit_code, 7);
    EXPECT_FALSE(watch_.find(make_capture("other")).is_known);
}

TEST_F(Watch, KnowsHowAProcessEndedThatNobodyHasWaitedFor) {
    const std::string capture = make_capture("");
    const pid_t child = start(capture, [] { _exit(3); });
    siginfo_t info{};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
    watch_.update();
    ASSERT_TRUE(watch_.find(capture).end);
    EXPECT_EQ(watch_.find(capture).end->exit_code, 3);
    waitpid(child, nullptr, 0);
}

TEST_F(Watch, BelievesAParentThatHasWaited) {
    const std::string own = make_capture("own"), capture = make_capture("");
    report(own);  // a parent that records
    int ready[2], blocked[2];
    ASSERT_TRUE(pipe(ready) == 0 && pipe(blocked) == 0);
    char byte = 'x';
    const pid_t child = start(capture, [&] {
        ::close(blocked[1]);
        if (::write(ready[1], &byte, 1) == 1 && ::read(blocked[0], &byte, 1) == 0) _exit(0);
    });
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);  // it has reported itself
    report_child_end(child, 0x137f);           // stopped: not an end
    watch_.update();
    EXPECT_TRUE(watch_.find(capture).is_known && !watch_.find(capture).end);
    report_child_end(child, SIGSEGV | 0x80);  // with a core dump
    watch_.update();
    EXPECT_TRUE(watch_.find(own).is_known && !watch_.find(own).has_ended);
    ASSERT_TRUE(watch_.find(capture).end);
    EXPECT_EQ(watch_.find(capture).end->signal, SIGSEGV);
    ::close(blocked[1]);
    waitpid(child, nullptr, 0);
}

TEST_F(Watch, KnowsWhichProcessesAreNotRecordedAndWhy) {
    {
        const ScopedLock lock(recorder_mutex);
        report_unrecorded(tree_, "the disk is full");
        report_unrecorded(tree_, std::string(10'000, 'x'));
    }
    watch_.update();
    const std::vector<UnrecordedProcess> found = watch_.unrecorded();
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ(found[0].pid, getpid());
    EXPECT_NE(found[0].start, 0u);
    EXPECT_EQ(found[0].reason, "the disk is full");
    EXPECT_NE(found[0].executable.find("record_test"), std::string::npos);
    EXPECT_NE(found[0].command_line.find("record_test"), std::string::npos);
    EXPECT_EQ(found[1].reason, std::string(512, 'x'));
    EXPECT_EQ(found[1].executable, found[0].executable);
}

TEST_F(Watch, IgnoresPacketsThatAreNone) {
    const std::string path = run_socket_path(tree_);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, path.size());
    for (const std::string& text : {std::string(), std::string("x"), std::string(48, 'x'),
                                    std::string(500, 'x'), std::string(sizeof(ProcessPacket), 'x')}) {
        const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
        ASSERT_EQ(connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        ASSERT_EQ(send(socket, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
        ::close(socket);
    }
    const int silent = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
    ASSERT_EQ(connect(silent, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    watch_.update();
    const std::string capture = make_capture("");
    report(capture);
    watch_.update();
    EXPECT_TRUE(watch_.find(capture).is_known);
    ::close(silent);
}

}  // namespace
}  // namespace marey
