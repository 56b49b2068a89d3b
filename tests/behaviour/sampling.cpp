// sampling.cpp: samples of C++ programs, and that the program does not notice them.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <marey/all.h>

namespace {

using marey::Row;
using marey::SampleColumns;
using marey::SampleState;
using marey::Session;
using marey::SessionOptions;
using marey::Trace;

SessionOptions sampled(std::uint32_t rate) {
    SessionOptions options;
    options.sample = rate;
    return options;
}

std::uint64_t own_cpu_ns() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

/// Uses so much CPU time, most of it in user mode. Each has pages for itself, in a section without other
/// code.
#define BURN(name)                                                                             \
    [[gnu::noinline, gnu::section(".burn"), gnu::aligned(4096)]] void name(std::uint64_t ns) { \
        volatile std::uint64_t number = 1;                                                     \
        for (const std::uint64_t end = own_cpu_ns() + ns; own_cpu_ns() < end;) {               \
            for (int i = 0; i < 20000; ++i) number = number * 6364136223846793005ull + 1;      \
        }                                                                                      \
    }
BURN(burn_most)
BURN(burn_some)
BURN(burn_little)

/// Whether a frame is of one of these functions, each of which has a page for itself.
bool is_in(const marey::FrameInfo& frame, void (*function)(std::uint64_t)) {
    Dl_info info{};
    const auto address = reinterpret_cast<std::uintptr_t>(function);
    if (dladdr(reinterpret_cast<void*>(address), &info) == 0) return false;
    const std::uintptr_t offset = address - reinterpret_cast<std::uintptr_t>(info.dli_fbase);
    return frame.offset >= offset && frame.offset < offset + 4096 && frame.module != 0;
}

bool is_on_stack(const Trace& trace, Row stack, void (*function)(std::uint64_t)) {
    for (; stack != marey::kNoRow; stack = trace.stacks()[stack].outer) {
        if (is_in(trace.frames()[trace.stacks()[stack].frame], function)) return true;
    }
    return false;
}

double cpu_ns_in(const Trace& trace, void (*function)(std::uint64_t)) {
    const SampleColumns samples = trace.samples();
    double sum = 0;
    for (Row row = 0; row < samples.size(); ++row) {
        if (is_on_stack(trace, samples.stack[row], function)) sum += static_cast<double>(samples.cpu_ns[row]);
    }
    return sum;
}

void refuse_perf_events() {
    const sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{sizeof filter / sizeof filter[0], const_cast<sock_filter*>(filter)};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) std::_Exit(77);
}

/// Runs the test in a child, with and without perf_event_open; its failures become one of this process.
void with_both_clocks(const std::function<void()>& test) {
    for (const bool is_refused : {false, true}) {
        const pid_t child = fork();
        if (child == 0) {
            if (is_refused) refuse_perf_events();
            test();
            std::_Exit(::testing::Test::HasFailure() ? 1 : 0);
        }
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0) << (is_refused ? "without" : "with") << " perf_event_open";
    }
}

TEST(Sampling, FunctionsHaveTheirSharesOfTheCpuTime) {
    with_both_clocks([] {
        Session session(sampled(1000));
        for (int i = 0; i < 10; ++i) {
            burn_most(70'000'000);
            burn_some(20'000'000);
            burn_little(10'000'000);
        }
        const Trace trace = session.stop();
        const double most = cpu_ns_in(trace, burn_most), some = cpu_ns_in(trace, burn_some),
                     little = cpu_ns_in(trace, burn_little);
        const double all = most + some + little;
        EXPECT_NEAR(most / all, 0.7, 0.05);
        EXPECT_NEAR(some / all, 0.2, 0.05);
        EXPECT_NEAR(little / all, 0.1, 0.05);
        EXPECT_NEAR(all, 1e9, 1e8);  // weights are CPU time
        ASSERT_EQ(trace.sampling().size(), 1u);
        EXPECT_EQ(trace.sampling()[0].lost, 0u);
    });
}

TEST(Sampling, TheClockIsNamed) {
    const pid_t child = fork();
    if (child == 0) {
        refuse_perf_events();
        Session session(sampled(500));
        burn_most(100'000'000);
        const Trace trace = session.stop();
        const bool is_right = trace.sampling().size() == 1 &&
                              trace.string(trace.sampling()[0].clock) == "cpu_clock" &&
                              trace.sampling()[0].rate_asked == 500;
        std::_Exit(is_right ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST(Sampling, SamplesBelongToTheInnermostRange) {
    Session session(sampled(1000));
    {
        MAREY_RANGE("outer");
        burn_some(100'000'000);
        MAREY_RANGE("inner");
        burn_most(200'000'000);
    }
    const Trace trace = session.stop();
    const SampleColumns samples = trace.samples();
    double right = 0, wrong = 0;
    for (Row row = 0; row < samples.size(); ++row) {
        if (!is_on_stack(trace, samples.stack[row], burn_most)) continue;
        const bool is_inner =
            samples.range[row] != marey::kNoRow && trace.range_name(samples.range[row]) == "inner";
        (is_inner ? right : wrong) += 1;
    }
    EXPECT_GT(right, 10);
    EXPECT_EQ(wrong, 0);
}

TEST(Sampling, EveryThreadIsSampledAlsoOnesThatRecordNothing) {
    with_both_clocks([] {
        Session session(sampled(1000));
        std::thread early(burn_most, 100'000'000);
        std::thread late([] {
            pthread_setname_np(pthread_self(), "late");
            burn_some(100'000'000);
        });
        early.join();
        late.join();
        const Trace trace = session.stop();
        EXPECT_GT(cpu_ns_in(trace, burn_most), 5e7);
        EXPECT_GT(cpu_ns_in(trace, burn_some), 5e7);
        EXPECT_GT(trace.threads().size(), 2u);
    });
}

TEST(Sampling, ManyThreadsThatLiveShortlyAreNoProblem) {
    with_both_clocks([] {
        Session session(sampled(5000));
        for (int i = 0; i < 300; ++i) {
            std::thread one([] {}), other(burn_little, 200'000);
            one.join();
            other.join();
        }
        burn_most(20'000'000);
        EXPECT_GT(cpu_ns_in(session.stop(), burn_most), 0);
    });
}

TEST(Sampling, SystemCallsDoNotEndEarlyAndErrnoStays) {
    with_both_clocks([] {
        Session session(sampled(5000));
        int interrupted = 0, changed = 0;
        std::thread waits([&] {
            for (int i = 0; i < 300; ++i) {
                const timespec time{0, 1'000'000};
                if (nanosleep(&time, nullptr) != 0) ++interrupted;
                if (poll(nullptr, 0, 1) < 0) ++interrupted;
                burn_little(100'000);
            }
        });
        std::thread runs([&] {
            for (int i = 0; i < 300; ++i) {
                errno = 1000 + i;
                [[maybe_unused]] volatile int sum = 0;
                for (int k = 0; k < 300'000; ++k) sum = k;
                if (errno != 1000 + i) ++changed;
            }
        });
        waits.join();
        runs.join();
        EXPECT_EQ(interrupted, 0);
        EXPECT_EQ(changed, 0);
        EXPECT_GT(session.stop().samples().size(), 0u);
    });
}

TEST(Sampling, ThreadsThatBlockEverySignalGetTheirTimeLater) {
    with_both_clocks([] {
        Session session(sampled(1000));
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, &before);
        burn_most(100'000'000);
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        burn_some(20'000'000);
        const Trace trace = session.stop();
        double all_ns = 0;
        for (const std::int64_t ns : trace.samples().cpu_ns) all_ns += static_cast<double>(ns);
        EXPECT_GT(all_ns, 8e7);
    });
}

TEST(Sampling, ProgramsMayUseOtherSignalsAndAlternateStacks) {
    with_both_clocks([] {
        for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) std::signal(number, [](int) {});
        for (const bool is_urgent_free : {true, false}) {
            if (!is_urgent_free) {
                std::signal(SIGRTMAX - 5, SIG_DFL);
                std::signal(SIGURG, [](int) {});
            }
            Session session(sampled(1000));
            burn_most(50'000'000);
            EXPECT_GT(cpu_ns_in(session.stop(), burn_most), 2e7);
        }
        std::vector<char> memory(1 << 16);
        stack_t stack{};
        stack.ss_sp = memory.data();
        stack.ss_size = memory.size();
        sigaltstack(&stack, nullptr);
        Session session(sampled(1000));
        burn_most(100'000'000);
        EXPECT_GT(cpu_ns_in(session.stop(), burn_most), 5e7);
    });
}

TEST(Sampling, AProgramThatForksGoesOnInBothProcesses) {
    Session session(sampled(1000));
    for (int i = 0; i < 10; ++i) {
        burn_little(5'000'000);
        const pid_t child = fork();
        if (child == 0) {
            burn_little(5'000'000);
            std::_Exit(0);
        }
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
    EXPECT_GT(cpu_ns_in(session.stop(), burn_little), 2e7);
}

TEST(Sampling, AWaitIsOneSampleWithItsLength) {
    with_both_clocks([] {
        Session session(sampled(1000));
        using Clock = std::chrono::steady_clock;
        std::mutex mutex;
        std::condition_variable never;
        std::int64_t waited_ns = 0;
        pid_t tid = 0;
        std::thread waits([&] {
            tid = static_cast<pid_t>(syscall(SYS_gettid));
            burn_little(20'000'000);
            std::unique_lock lock(mutex);
            const auto start = Clock::now();
            never.wait_for(lock, std::chrono::milliseconds(400));
            waited_ns = std::chrono::nanoseconds(Clock::now() - start).count();
            lock.unlock();
            burn_little(20'000'000);
        });
        waits.join();
        const Trace trace = session.stop();
        const SampleColumns samples = trace.samples();
        std::int64_t found_ns = 0, longest_ns = 0;
        for (Row row = 0; row < samples.size(); ++row) {
            if (samples.state[row] != SampleState::Waiting ||
                trace.threads()[samples.thread[row]].os_tid != tid)
                continue;
            found_ns += samples.duration_ns[row];
            if (samples.duration_ns[row] <= longest_ns) continue;
            longest_ns = samples.duration_ns[row];
            const marey::FrameInfo& frame = trace.frames()[trace.stacks()[samples.stack[row]].frame];
            EXPECT_NE(trace.string(frame.module).find("libc"), std::string_view::npos);
        }
        EXPECT_NEAR(static_cast<double>(longest_ns), static_cast<double>(waited_ns), 5e7);
        EXPECT_LT(found_ns, 2 * waited_ns);
    });
}

TEST(Sampling, AKilledProgramLeavesItsSamples) {
    const std::string file = (std::filesystem::path(::testing::TempDir()) /
                              ("sampling_killed." + std::to_string(getpid()) + ".marey"))
                                 .string();
    const pid_t child = fork();
    if (child == 0) {
        SessionOptions options = sampled(1000);
        options.output = file;
        Session session(options);
        burn_most(300'000'000);
        kill(getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    const Trace trace = Trace::load(file);
    EXPECT_GT(cpu_ns_in(trace, burn_most), 2e8);
    ASSERT_EQ(trace.sampling().size(), 1u);
    std::filesystem::remove(file);
}

TEST(Sampling, SessionsMayBeginAndEndManyTimes) {
    for (int i = 0; i < 20; ++i) {
        Session session(sampled(i % 2 == 0 ? 1000 : 100));
        burn_little(3'000'000);
        session.stop();
    }
    SessionOptions without;
    Session session(without);
    burn_little(3'000'000);
    EXPECT_EQ(session.stop().samples().size(), 0u);
}

}  // namespace
