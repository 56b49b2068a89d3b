// thread_clock.h: a clock of a thread's CPU time that signals the thread (perf_event_open).
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace marey::sampling {

/// Sends `signal` to the thread when it has used `period_ns` of CPU time; the handler starts it again. Counts
/// only while the thread is outside of the kernel: a signal would end a system call with EINTR. `id` tells it
/// apart from other files with its number. -1: it is refused.
int open_thread_clock(pid_t tid, int signal, std::uint64_t period_ns, std::uint64_t& id) noexcept;
/// Does nothing if the program has closed it.
void close_thread_clock(int fd, std::uint64_t id) noexcept;

}  // namespace marey::sampling
