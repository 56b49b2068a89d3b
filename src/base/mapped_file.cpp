// mapped_file.cpp: mmap, with reading into memory as the fallback.
#include "base/mapped_file.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include <marey/error.h>

#include "base/input_file.h"

namespace marey {
namespace {

[[noreturn]] void fail(const std::string& path, int error) {
    throw Error(path + ": " + std::strerror(error));
}

// The first access to a page of a hole through a mapping may have to allocate it, which on a full disk
// (tmpfs) is a SIGBUS: only the file's data is mapped, over zeros.
void* map_around_holes(int fd, std::size_t size) noexcept {
    void* const zeros = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (zeros == MAP_FAILED) return MAP_FAILED;
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    for (off_t hole = 0;;) {
        const off_t data = ::lseek(fd, hole, SEEK_DATA);
        if (data < 0) return zeros;  // ENXIO: no more data
        hole = ::lseek(fd, data, SEEK_HOLE);
        const std::size_t from = static_cast<std::size_t>(data) / page * page;
        const std::size_t end = std::min(static_cast<std::size_t>(hole), size);
        if (hole < 0 || from >= end) return zeros;
        void* const at = static_cast<std::byte*>(zeros) + from;
        if (::mmap(at, end - from, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, static_cast<off_t>(from)) != at) {
            ::munmap(zeros, size);
            return MAP_FAILED;
        }
    }
}

void* map_file(int fd, const struct stat& status) noexcept {
    const auto size = static_cast<std::size_t>(status.st_size);
    if (size == 0) return MAP_FAILED;
    const bool is_sparse = static_cast<std::size_t>(status.st_blocks) * 512 < size;
    const bool has_holes = is_sparse && ::lseek(fd, 0, SEEK_HOLE) < status.st_size;
    void* const address =
        has_holes ? map_around_holes(fd, size) : ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (is_sparse) ::lseek(fd, 0, SEEK_SET);
    return address;
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
    struct stat status {};
    const Descriptor file = open_input(path, status);
    std::shared_ptr<MappedFile> result(new MappedFile);
    if (S_ISREG(status.st_mode)) {
        // Files in /proc are regular too, but have size 0 whatever they contain.
        void* const address = map_file(file.get(), status);
        if (address != MAP_FAILED) {
            result->mapping_ = address;
            result->size_ = static_cast<std::size_t>(status.st_size);
            result->data_ = static_cast<const std::byte*>(address);
            return result;
        }
    }
    std::vector<std::byte> bytes;
    std::byte buffer[64 * 1024];
    for (;;) {
        const ssize_t count = ::read(file.get(), buffer, sizeof buffer);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) fail(path, errno);
        if (count == 0) break;
        bytes.insert(bytes.end(), buffer, buffer + count);
    }
    result->size_ = bytes.size();
    result->copied_ = std::make_unique<std::byte[]>(bytes.size());
    if (!bytes.empty()) std::memcpy(result->copied_.get(), bytes.data(), bytes.size());
    result->data_ = result->copied_.get();
    return result;
}

MappedFile::~MappedFile() {
    if (mapping_ != nullptr) ::munmap(mapping_, size_);
}

}  // namespace marey
