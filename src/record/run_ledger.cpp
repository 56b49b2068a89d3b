// run_ledger.cpp: the ledger is a file in shared memory, named by the tree's id, for its owner alone.
#include "record/run_ledger.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include <marey/detail/thread_safety.h>
#include <marey/merge.h>

#include "record/process_report.h"

namespace marey {
namespace {

constexpr std::uint32_t kMagic = 0x4c52414d;  // "MARL"
constexpr std::uint32_t kVersion = 2;
constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kTreeDigits = 32;
static_assert(sizeof(RunLedger::Page) <= kPageBytes && std::atomic<std::uint64_t>::is_always_lock_free);

constexpr char kFolder[] = "/dev/shm";
constexpr std::string_view kPrefix = "marey-";

std::string path_of(const std::string& tree) {
    return std::string(kFolder) + "/" + std::string(kPrefix) + tree;
}

// The descriptors that hold the locks of the ledgers that this process has created.
Mutex locks_mutex;
std::map<std::string, int> locks MAREY_GUARDED_BY(locks_mutex);

/// Removes the ledgers of commands that were killed: their owners no longer hold the lock. Processes that
/// still map one go on with it.
void remove_stale() noexcept {
    DIR* const folder = ::opendir(kFolder);
    if (folder == nullptr) return;
    while (const dirent* const entry = ::readdir(folder)) {
        const std::string_view name = entry->d_name;
        if (!name.starts_with(kPrefix) || name.size() != kPrefix.size() + kTreeDigits) continue;
        const int fd =
            ::openat(::dirfd(folder), entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0) continue;
        RunLedger::Page page{};
        struct stat info {};
        if (::fstat(fd, &info) == 0 && info.st_uid == ::geteuid() &&
            ::pread(fd, &page, sizeof page, 0) == static_cast<ssize_t>(sizeof page) && page.magic == kMagic &&
            page.version == kVersion && ::flock(fd, LOCK_EX | LOCK_NB) == 0) {
            ::unlinkat(::dirfd(folder), entry->d_name, 0);
            ::unlink(run_socket_path(std::string(name.substr(kPrefix.size()))).c_str());
        }
        ::close(fd);
    }
    ::closedir(folder);
}

}  // namespace

bool RunLedger::open(const std::string& tree, std::string& problem) noexcept {
    if (page_ != nullptr) return true;
    if (tree.size() != kTreeDigits) return false;
    const int fd = ::open(path_of(tree).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return false;
    struct stat info {};
    const bool is_ours = ::fstat(fd, &info) == 0 && info.st_uid == ::geteuid() && S_ISREG(info.st_mode) &&
                         info.st_size == static_cast<off_t>(kPageBytes);
    void* const mapped =
        is_ours ? ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    ::close(fd);
    if (mapped != MAP_FAILED) {
        auto* const page = static_cast<Page*>(mapped);
        if (page->magic == kMagic && page->version == kVersion && page->max_bytes != 0 &&
            std::memcmp(page->tree, tree.data(), tree.size()) == 0) {
            page_ = page;
            return true;
        }
        ::munmap(mapped, kPageBytes);
    }
    problem = "the size limit counts for each process of the run separately: " + path_of(tree) +
              ", which adds up their sizes, is damaged";
    return false;
}

void RunLedger::close() noexcept {
    if (page_ != nullptr) ::munmap(std::exchange(page_, nullptr), kPageBytes);
}

// The file gets its name when it is complete and locked; remove_stale() leaves locked ones alone.
bool create_run_ledger(const std::string& tree, std::uint64_t max_bytes) noexcept {
    remove_stale();
    const int fd = ::open(kFolder, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    if (fd < 0) return false;
    RunLedger::Page page{};
    page.version = kVersion;
    page.max_bytes = max_bytes;
    tree.copy(page.tree, sizeof page.tree - 1);
    page.magic = kMagic;
    const std::string own = "/proc/self/fd/" + std::to_string(fd);
    const bool is_created =
        ::flock(fd, LOCK_EX | LOCK_NB) == 0 && ::ftruncate(fd, static_cast<off_t>(kPageBytes)) == 0 &&
        ::pwrite(fd, &page, sizeof page, 0) == static_cast<ssize_t>(sizeof page) &&
        ::linkat(AT_FDCWD, own.c_str(), AT_FDCWD, path_of(tree).c_str(), AT_SYMLINK_FOLLOW) == 0;
    if (is_created) {
        const ScopedLock lock(locks_mutex);
        locks[tree] = fd;
    } else {
        ::close(fd);
    }
    return is_created;
}

void remove_run_ledger(const std::string& tree) noexcept {
    ::unlink(path_of(tree).c_str());
    const ScopedLock lock(locks_mutex);
    if (const auto held = locks.extract(tree)) ::close(held.mapped());
}

}  // namespace marey
