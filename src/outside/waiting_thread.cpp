// waiting_thread.cpp: a thread of another process while it waits: what for, and its native frames.
#include "outside/waiting_thread.h"

#include <sys/syscall.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "native/frame_step.h"

namespace marey {
namespace {

constexpr std::size_t kMostStackBytes = std::size_t{256} << 10;
constexpr std::size_t kMostNativeCalls = 4096;

constexpr std::int64_t kSleepCalls[] = {
#ifdef SYS_nanosleep
    SYS_nanosleep,
#endif
    SYS_clock_nanosleep};
constexpr std::int64_t kProcessCalls[] = {SYS_wait4, SYS_waitid};
constexpr std::int64_t kInputCalls[] = {
#ifdef SYS_poll  // x86-64 has the older ones, too
    SYS_poll,    SYS_select,   SYS_epoll_wait,
#endif
    SYS_ppoll,   SYS_pselect6, SYS_epoll_pwait, SYS_read,        SYS_readv,   SYS_pread64,
    SYS_write,   SYS_writev,   SYS_pwrite64,    SYS_recvfrom,    SYS_recvmsg, SYS_sendto,
    SYS_sendmsg, SYS_accept,   SYS_accept4,     SYS_connect,     SYS_fsync,   SYS_fdatasync,
    SYS_openat,  SYS_sendfile, SYS_splice,      SYS_io_getevents};

}  // namespace

const char* wait_name(OutsideWait wait) noexcept {
    constexpr const char* kNames[] = {"",          "GIL",       "lock", "sleep", "input or output",
                                      "a process", "the kernel"};
    return kNames[static_cast<std::size_t>(wait)];
}

OutsideWait WaitingThread::wait() const noexcept {
    const auto is_in = [this](std::span<const std::int64_t> calls) {
        return std::ranges::find(calls, call) != calls.end();
    };
    if (call == SYS_futex) return OutsideWait::Lock;
    if (is_in(kSleepCalls)) return OutsideWait::Sleep;
    if (is_in(kProcessCalls)) return OutsideWait::Process;
    return is_in(kInputCalls) ? OutsideWait::Input : OutsideWait::Other;
}

std::optional<WaitingThread> waiting_thread(const ProcessFiles& process, std::int64_t os_tid) {
    // "running", "-1 SP PC" or "NUMBER ARGUMENT*6 SP PC"
    const std::string text = process.text("task/" + std::to_string(os_tid) + "/syscall");
    WaitingThread found;
    auto& [a, b, c, d, e, f] = found.arguments;
    if (std::sscanf(text.c_str(),
                    "%" SCNd64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
                    " %" SCNxPTR " %" SCNxPTR,
                    &found.call, &a, &b, &c, &d, &e, &f, &found.sp, &found.pc) == 9)
        return found;
    found.arguments = {};
    if (std::sscanf(text.c_str(), "%" SCNd64 " %" SCNxPTR " %" SCNxPTR, &found.call, &found.sp, &found.pc) ==
        3)
        return found;
    return std::nullopt;
}

std::vector<NativeCall> native_calls(const WaitingThread& thread, ProcessModules& modules,
                                     CopiedMemory& memory) {
    std::vector<NativeCall> calls;
    const std::uintptr_t room = modules.mapping_end(thread.sp) - thread.sp;
    const std::size_t copied = memory.copy(thread.sp, std::min<std::size_t>(room, kMostStackBytes));
    if (copied == 0) return calls;
    const auto shift = reinterpret_cast<std::uintptr_t>(memory.find(thread.sp, copied)) - thread.sp;
    const StackBounds stack{thread.sp, thread.sp + copied};
    NativeStep step{{thread.pc - 1, thread.sp, 0}};  // the system call has just been made
    calls.push_back({step.frame.pc, step.frame.sp});
    for (NativeFrame caller{}; calls.size() < kMostNativeCalls; step = {caller}) {
        if (!find_caller(stack, modules.rule_at(step.frame.pc), 0, step, caller, shift) ||
            modules.find(caller.pc) == nullptr)
            break;
        calls.push_back({caller.pc, caller.sp});
    }
    return calls;
}

}  // namespace marey
