// recorded_processes.cpp: finds the processes that write captures: each has its file mapped for writing.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <set>

#include <marey/detail/log_format.h>
#include <marey/live.h>

#include "base/process_stat.h"
#include "collect/live/shared_mappings.h"

namespace marey {
namespace {

namespace fs = std::filesystem;

/// Whether the file is an unfinished capture of the process, and not one that it has from its parent.
bool is_capture_of(const std::string& path, std::uint64_t inode, std::int64_t pid) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (file < 0) return false;
    detail::FileHeader header{};
    struct stat status {};
    const bool is_read = fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_ino == inode &&
                         pread(file, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header);
    close(file);
    return is_read && std::memcmp(header.magic, detail::kFileMagic, sizeof header.magic) == 0 &&
           header.finished == 0 && header.pid == pid;
}

std::set<std::string> captures_of_process(std::int64_t pid) {
    std::set<std::string> seen, found;
    for (const SharedMapping& mapping : shared_mappings(pid)) {
        if (mapping.path.starts_with('/') && seen.insert(mapping.path).second &&
            is_capture_of(mapping.path, mapping.inode, own_pid(pid)))
            found.insert(mapping.path);
    }
    return found;
}

}  // namespace

std::vector<RecordedProcess> recorded_processes(std::int64_t pid) {
    std::vector<std::int64_t> pids;
    if (pid != 0) {
        pids.push_back(pid);
    } else {
        std::error_code error;
        for (fs::directory_iterator entry("/proc", error), end; !error && entry != end;
             entry.increment(error)) {
            const std::string name = entry->path().filename().string();
            std::int64_t number = 0;
            const auto [rest, failure] = std::from_chars(name.data(), name.data() + name.size(), number);
            if (failure == std::errc() && *rest == '\0') pids.push_back(number);
        }
        std::ranges::sort(pids);
    }
    std::vector<RecordedProcess> found;
    for (const std::int64_t each : pids) {
        for (const std::string& capture : captures_of_process(each)) found.push_back({each, capture});
    }
    return found;
}

}  // namespace marey
