// thread_states.cpp: reads /proc/self/task.
#include "sources/sampling/thread_states.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/small_file.h"

namespace marey::sampling {
namespace {

std::string task_file(pid_t tid, const char* name) {
    return "/proc/self/task/" + std::to_string(tid) + "/" + name;
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
    std::string name = read_small_file(task_file(tid, "comm").c_str());
    if (!name.empty() && name.back() == '\n') name.pop_back();
    return name;
}

// "running", or "number arguments... stack-pointer program-counter"; the number is -1 outside of system
// calls, and then there are no arguments.
WaitPlace wait_place_of(pid_t tid) noexcept {
    const std::string text = read_small_file(task_file(tid, "syscall").c_str());
    const std::size_t last = text.rfind(' ');
    if (last == std::string::npos || last == 0) return {};
    const std::size_t before = text.rfind(' ', last - 1);
    if (before == std::string::npos) return {};
    return {true, std::strtoull(text.c_str() + before + 1, nullptr, 16),
            std::strtoull(text.c_str() + last + 1, nullptr, 16)};
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
