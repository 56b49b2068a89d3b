// mapped_file.cpp: mmap, with reading into memory as the fallback.
#include "base/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include <kymo/error.h>

namespace kymo {
namespace {

class Descriptor {
  public:
    explicit Descriptor(int fd) noexcept : fd_(fd) {}
    ~Descriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const noexcept { return fd_; }

  private:
    int fd_;
};

[[noreturn]] void fail(const std::string& path, int error) {
    throw Error(path + ": " + std::strerror(error));
}

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) fail(path, errno);
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) fail(path, errno);
    if (S_ISDIR(status.st_mode)) fail(path, EISDIR);
    std::shared_ptr<MappedFile> result(new MappedFile);
    if (S_ISREG(status.st_mode)) {
        // Files of /proc are regular too, and of size 0 whatever they hold.
        const auto size = static_cast<std::size_t>(status.st_size);
        void* const address =
            size == 0 ? MAP_FAILED : ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
        if (address != MAP_FAILED) {
            result->mapping_ = address;
            result->size_ = size;
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

}  // namespace kymo
