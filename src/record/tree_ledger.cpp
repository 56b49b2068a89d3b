// tree_ledger.cpp: the ledger is a file in shared memory, named by the tree's id, for its owner alone.
#include "record/tree_ledger.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <marey/merge.h>

namespace marey {
namespace {

constexpr std::uint32_t kMagic = 0x4c52414d;  // "MARL"
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kPageBytes = 4096;
static_assert(sizeof(TreeLedger::Page) <= kPageBytes && std::atomic<std::uint64_t>::is_always_lock_free);

std::string path_of(const std::string& tree) {
    return "/dev/shm/marey-" + tree;
}

}  // namespace

bool TreeLedger::open(const std::string& tree, std::string& problem) noexcept {
    if (page_ != nullptr) return true;
    if (tree.size() != 32) return false;
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

bool create_tree_ledger(const std::string& tree, std::uint64_t max_bytes) noexcept {
    const std::string path = path_of(tree);
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return false;
    TreeLedger::Page page{};
    page.version = kVersion;
    page.max_bytes = max_bytes;
    tree.copy(page.tree, sizeof page.tree - 1);
    page.magic = kMagic;
    const bool is_written = ::ftruncate(fd, static_cast<off_t>(kPageBytes)) == 0 &&
                            ::pwrite(fd, &page, sizeof page, 0) == static_cast<ssize_t>(sizeof page);
    ::close(fd);
    if (!is_written) ::unlink(path.c_str());
    return is_written;
}

void remove_tree_ledger(const std::string& tree) noexcept {
    ::unlink(path_of(tree).c_str());
}

}  // namespace marey
