// thread_states.cpp: reads /proc/self/task.
#include "sources/sampling/thread_states.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace marey::sampling {
namespace {

/// Reads the first bytes of a file of a thread, with a NUL after them.
std::size_t read_task_file(pid_t tid, const char* name, char* to, std::size_t room) noexcept {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/self/task/%d/%s", static_cast<int>(tid), name);
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return to[0] = '\0';
    const ssize_t count = ::read(fd, to, room - 1);
    ::close(fd);
    const auto length = static_cast<std::size_t>(std::max<ssize_t>(count, 0));
    to[length] = '\0';
    return length;
}

}  // namespace

std::uint64_t thread_count() noexcept {
    struct stat folder {};
    return ::stat("/proc/self/task", &folder) == 0 ? folder.st_nlink : 0;
}

std::vector<pid_t> list_thread_ids() {
    std::vector<pid_t> ids;
    DIR* const folder = opendir("/proc/self/task");
    if (folder == nullptr) return ids;
    while (const dirent* const entry = readdir(folder)) {
        if (entry->d_name[0] != '.') ids.push_back(static_cast<pid_t>(std::atoi(entry->d_name)));
    }
    closedir(folder);
    return ids;
}

std::string name_of_thread(pid_t tid) {
    char name[64];
    const std::size_t length = read_task_file(tid, "comm", name, sizeof name);
    return {name, length - (length != 0 ? 1 : 0)};
}

// "running", or "number arguments... stack-pointer program-counter"; the number is -1 outside of system
// calls, and then there are no arguments.
WaitPlace wait_place_of(pid_t tid) noexcept {
    char text[256];
    read_task_file(tid, "syscall", text, sizeof text);
    char* const last = std::strrchr(text, ' ');
    if (last == nullptr) return {};
    *last = '\0';
    const char* const before = std::strrchr(text, ' ');
    if (before == nullptr) return {};
    return {true, std::strtoull(before + 1, nullptr, 16), std::strtoull(last + 1, nullptr, 16)};
}

std::size_t copy_checked(std::uintptr_t from, std::byte* to, std::size_t bytes) noexcept {
    constexpr std::size_t kPage = 4096;
    constexpr std::size_t kPieces = 32;
    iovec pieces[kPieces];
    std::size_t count = 0;
    std::uintptr_t at = from;
    for (; count < kPieces && at < from + bytes; ++count) {
        const std::size_t length = std::min(from + bytes - at, kPage - at % kPage);
        pieces[count] = {reinterpret_cast<void*>(at), length};  // NOLINT(performance-no-int-to-ptr)
        at += length;
    }
    const iovec local{to, at - from};
    const ssize_t copied = process_vm_readv(getpid(), &local, 1, pieces, count, 0);
    return copied > 0 ? static_cast<std::size_t>(copied) : 0;
}

}  // namespace marey::sampling
