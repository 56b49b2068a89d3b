// thread_clock.cpp: one software event for each thread.
#include "sources/sampling/thread_clock.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/perf_event.h>

#include "record/file_handle.h"

namespace marey::sampling {

int open_thread_clock(pid_t tid, int signal, std::uint64_t period_ns, std::uint64_t& id) noexcept {
    perf_event_attr attributes{};
    attributes.type = PERF_TYPE_SOFTWARE;
    attributes.size = sizeof attributes;
    attributes.config = PERF_COUNT_SW_TASK_CLOCK;
    attributes.sample_period = period_ns;
    attributes.disabled = 1;
    attributes.exclude_kernel = 1;
    attributes.exclude_hv = 1;
    auto fd = static_cast<int>(syscall(SYS_perf_event_open, &attributes, tid, -1, -1, PERF_FLAG_FD_CLOEXEC));
    if (fd < 0) return -1;
    fd = avoid_standard_fds(fd);
    const f_owner_ex owner{F_OWNER_TID, tid};
    if (fcntl(fd, F_SETFL, O_ASYNC) == 0 && fcntl(fd, F_SETSIG, signal) == 0 &&
        fcntl(fd, F_SETOWN_EX, &owner) == 0 && ioctl(fd, PERF_EVENT_IOC_ID, &id) == 0 &&
        ioctl(fd, PERF_EVENT_IOC_REFRESH, 1) == 0)
        return fd;
    close(fd);
    return -1;
}

void close_thread_clock(int fd, std::uint64_t id) noexcept {
    std::uint64_t found = 0;
    if (fd >= 0 && ioctl(fd, PERF_EVENT_IOC_ID, &found) == 0 && found == id) close(fd);
}

}  // namespace marey::sampling
