// process_end.cpp: appends how a process ended to its capture: one more block, with one record.
#include <marey/process_end.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include <marey/detail/log_format.h>
#include <marey/error.h>

namespace marey {
namespace {

class CaptureFile {
  public:
    explicit CaptureFile(const std::string& path)
        : path_(path), fd_(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) {
        if (fd_ < 0) fail();
    }
    ~CaptureFile() { ::close(fd_); }
    CaptureFile(const CaptureFile&) = delete;
    CaptureFile& operator=(const CaptureFile&) = delete;

    /// The length, which is 0 if it does not start like a capture of the process.
    std::uint64_t bytes_if_of(std::int64_t pid) const {
        detail::FileHeader header{};
        struct stat status {};
        if (::fstat(fd_, &status) != 0) fail();
        const ssize_t count = ::pread(fd_, &header, sizeof header, 0);
        if (count < 0) fail();
        const bool is_capture = count == static_cast<ssize_t>(sizeof header) && header.pid == pid &&
                                std::memcmp(header.magic, detail::kFileMagic, sizeof header.magic) == 0;
        return is_capture ? static_cast<std::uint64_t>(status.st_size) : 0;
    }
    void write(std::uint64_t at, const void* data, std::size_t bytes) const {
        if (::pwrite(fd_, data, bytes, static_cast<off_t>(at)) != static_cast<ssize_t>(bytes)) fail();
    }
    void set_length(std::uint64_t bytes) const {
        if (::ftruncate(fd_, static_cast<off_t>(bytes)) != 0) fail();
    }

  private:
    [[noreturn]] void fail() const { throw Error(path_ + ": " + std::strerror(errno)); }

    const std::string& path_;
    int fd_;
};

}  // namespace

bool append_process_end(const std::string& capture, std::int64_t pid, const ProcessEnd& end) {
    const CaptureFile file(capture);
    const std::uint64_t length = file.bytes_if_of(pid);
    if (length == 0) return false;
    struct {
        detail::BlockHeader header;
        detail::ProcessEndRecord record;
    } block{};
    block.record.head = {static_cast<std::uint16_t>(detail::JournalKind::ProcessEnd), 0,
                         sizeof(detail::ProcessEndRecord)};
    block.record.exit_code = end.exit_code;
    block.record.signal = end.signal;
    block.header.magic = detail::kBlockMagic;
    block.header.kind = static_cast<std::uint16_t>(detail::BlockKind::Journal);
    block.header.blocks = 1;
    block.header.sequence = ~std::uint64_t{0};  // the last part of the journal
    block.header.committed = sizeof block.record;
    const std::uint64_t at = (length + detail::kBlockBytes - 1) / detail::kBlockBytes * detail::kBlockBytes;
    file.set_length(at + detail::kBlockBytes);
    file.write(at, &block, sizeof block);
    return true;
}

}  // namespace marey
