// sample_handler.cpp: takes a sample of the interrupted thread. Allocates nothing, takes no lock, keeps
// errno.
#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include <marey/detail/log_format.h>

#include "native/native_stack.h"
#include "record/clocks/clock.h"
#include "record/stack_numbers.h"
#include "record/thread_log.h"
#include "sources/sampling/python_places.h"
#include "sources/sampling/sampled_threads.h"

namespace marey::sampling {
namespace {

constexpr std::size_t kPlaces = 8192;
constexpr std::size_t kProbes = 64;
constinit std::array<std::atomic<SampledThread*>, kPlaces> places{};
constinit std::atomic<bool> is_handling{false};
constinit Counts all_counts;

std::size_t place_of(pid_t tid) noexcept {
    return static_cast<std::uint32_t>(tid) * 0x9e3779b1u >> 19;
}

std::uint64_t nanoseconds(const timespec& time) noexcept {
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(time.tv_nsec);
}

FrameRegisters registers_of(const void* context) noexcept {
    const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__aarch64__)
    return {machine.pc, machine.sp, machine.regs[29], machine.regs[30]};
#else
    const auto at = [&](int index) { return static_cast<std::uintptr_t>(machine.gregs[index]); };
    return {at(REG_RIP), at(REG_RSP), at(REG_RBP)};
#endif
}

void take_sample(SampledThread& thread, const void* context) noexcept {
    timespec time{};
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0) return;
    const std::uint64_t cpu = nanoseconds(time);
    const std::uint64_t before = thread.sampled_cpu.load(std::memory_order_relaxed);
    RawSample sample{Clock::now(), cpu - std::min(cpu, before), 0, 0};
    const std::size_t native = capture_native_stack_from(registers_of(context), thread.room.addresses,
                                                         StackRoom::kNative, thread.room.stack_pointers);
    const detail::PythonSampling* const python = python_sampling();
    void* const state = python != nullptr ? python->own_thread() : nullptr;
    if (state != nullptr) thread.python.store(state, std::memory_order_relaxed);
    sample.stack = thread.room.number(native, state, true, sample.flags);
    if (!thread.put(sample)) {
        all_counts.lost.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    thread.sampled_cpu.store(cpu, std::memory_order_relaxed);
    if ((sample.flags & detail::kSampleTorn) != 0) all_counts.torn.fetch_add(1, std::memory_order_relaxed);
    if ((sample.flags & detail::kSampleCut) != 0) all_counts.cut.fetch_add(1, std::memory_order_relaxed);
}

#if defined(__x86_64__)
/// Whether the kernel ends this system call with EINTR after every handler, whatever SA_RESTART says, and it
/// may be made again with the same arguments: it has just begun, because threads that wait get no signal.
bool is_restarted(std::uint32_t number) noexcept {
    constexpr std::uint32_t kNumbers[] = {
        SYS_poll,        SYS_ppoll,           SYS_select, SYS_pselect6, SYS_nanosleep,  SYS_epoll_wait,
        SYS_epoll_pwait, SYS_clock_nanosleep, SYS_pause,  SYS_futex,    SYS_semtimedop, SYS_rt_sigtimedwait};
    return std::ranges::find(kNumbers, number) != std::end(kNumbers);
}

// Between the sampler's look and its signal a running thread may have begun to wait. The number of the call
// is in the instruction before: mov $number, %eax; syscall.
void restart_system_call(void* context) noexcept {
    auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    if (registers[REG_RAX] != -EINTR) return;
    constexpr std::size_t kLength = 7;
    unsigned char code[kLength];
    const auto pc = static_cast<std::uintptr_t>(registers[REG_RIP]);
    std::memcpy(code, reinterpret_cast<const void*>(pc - kLength), kLength);  // NOLINT
    std::uint32_t number = 0;
    std::memcpy(&number, code + 1, sizeof number);
    if (code[0] != 0xb8 || code[5] != 0x0f || code[6] != 0x05 || !is_restarted(number)) return;
    registers[REG_RAX] = static_cast<greg_t>(number);
    registers[REG_RIP] -= 2;
}
#else
void restart_system_call(void*) noexcept {}  // the first argument is lost
#endif

void handle(int, siginfo_t*, void* context) {
    const int kept = errno;
    // A thread that may make no system calls is idle for the recorder.
    if (is_handling.load(std::memory_order_acquire) && may_read_clock()) {
        if (SampledThread* const thread = find_thread(static_cast<pid_t>(syscall(SYS_gettid)))) {
            take_sample(*thread, context);
            thread->is_pending.store(false, std::memory_order_relaxed);
            const int fd = thread->clock_fd.load(std::memory_order_relaxed);
            if (fd >= 0) ioctl(fd, PERF_EVENT_IOC_REFRESH, 1);  // one signal is under way at most
        }
    }
    restart_system_call(context);
    errno = kept;
}

}  // namespace

Counts& counts() noexcept {
    return all_counts;
}

SampledThread* find_thread(pid_t tid) noexcept {
    const std::size_t first = place_of(tid);
    for (std::size_t i = 0; i < kProbes; ++i) {
        SampledThread* const found = places[(first + i) % kPlaces].load(std::memory_order_acquire);
        if (found != nullptr && found->tid.load(std::memory_order_relaxed) == tid) return found;
    }
    return nullptr;
}

bool publish_thread(SampledThread* thread, pid_t tid) noexcept {
    const std::size_t first = place_of(tid);
    for (std::size_t i = 0; i < kProbes; ++i) {
        std::atomic<SampledThread*>& place = places[(first + i) % kPlaces];
        if (place.load(std::memory_order_relaxed) != nullptr) continue;
        thread->tid.store(tid, std::memory_order_relaxed);
        place.store(thread, std::memory_order_release);
        return true;
    }
    return false;
}

void withdraw_thread(SampledThread* thread) noexcept {
    const std::size_t first = place_of(thread->tid.load(std::memory_order_relaxed));
    for (std::size_t i = 0; i < kProbes; ++i) {
        std::atomic<SampledThread*>& place = places[(first + i) % kPlaces];
        if (place.load(std::memory_order_relaxed) == thread) place.store(nullptr, std::memory_order_release);
    }
    thread->tid.store(0, std::memory_order_relaxed);
}

void set_handling(bool is_on) noexcept {
    is_handling.store(is_on, std::memory_order_release);
}

bool is_handler_installed(int signal) noexcept {
    struct sigaction now {};
    return sigaction(signal, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 &&
           now.sa_sigaction == handle;
}

// It stays installed: a signal may come late. Best is SIGURG, because it does nothing by default: after exec,
// or after the program has reset it. A real-time signal would end the program then.
int install_handler() noexcept {
    for (int signal = SIGURG; signal != 0; signal = signal == SIGURG    ? SIGRTMAX - 3
                                                    : signal > SIGRTMIN ? signal - 1
                                                                        : 0) {
        if (is_handler_installed(signal)) return signal;
        struct sigaction now {};
        if (sigaction(signal, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) continue;
        struct sigaction own {};
        own.sa_sigaction = handle;
        own.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
        sigemptyset(&own.sa_mask);
        if (sigaction(signal, &own, nullptr) == 0) return signal;
    }
    return 0;
}

bool read_cpu(pid_t tid, std::uint64_t& ns) noexcept {
    constexpr unsigned kThreadClock = 6;  // CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED
    timespec time{};
    const auto clock = static_cast<clockid_t>(~static_cast<unsigned>(tid) << 3 | kThreadClock);
    if (syscall(SYS_clock_gettime, clock, &time) != 0) return false;
    ns = nanoseconds(time);
    return true;
}

std::uint32_t StackRoom::number(std::size_t native_count, void* thread, bool is_own,
                                std::uint32_t& flags) noexcept {
    std::size_t python_count = 0;
    const detail::PythonSampling* const functions = thread != nullptr ? python_sampling() : nullptr;
    if (functions != nullptr) {
        bool is_torn = false;
        python_count = functions->frames(thread, is_own, python, kPython, is_torn);
        if (is_torn) {
            flags |= detail::kSampleTorn;
            python_count = 0;
        }
    }
    if (native_count == kNative || python_count == kPython) flags |= detail::kSampleCut;
    constexpr std::uint64_t kOffset = (std::uint64_t{1} << detail::kFrameModuleShift) - 1;
    std::size_t count = 0;
    std::size_t next = 0;
    for (std::size_t i = 0; i < native_count; ++i) {
        // Python's frames come before the native frame of the interpreter that runs them.
        const bool is_last = i + 1 == native_count;
        while (next < python_count && !is_last && python[next].anchor != 0 &&
               python[next].anchor < stack_pointers[i + 1])
            words[count++] = python_word(python[next++]);
        words[count++] = detail::kFrameNative | ((addresses[i] - 1) & kOffset);
    }
    while (next < python_count) words[count++] = python_word(python[next++]);
    const std::uint32_t number = stack_numbers().add({words, count});
    if (number < detail::kMaxSites) return number;
    return 0;
}

}  // namespace marey::sampling

namespace marey::detail {

void note_python_thread(std::int64_t os_tid, void* state) noexcept {
    sampling::SampledThread* const thread = sampling::find_thread(static_cast<pid_t>(os_tid));
    if (thread != nullptr) thread->python.store(state, std::memory_order_relaxed);
}

}  // namespace marey::detail
