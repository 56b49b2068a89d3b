// process_end.cpp: appends to a capture how its process ended, and problems of its run: one more block for
// each.
#include <marey/process_end.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include <marey/detail/log_format.h>
#include <marey/error.h>

#include "base/descriptor.h"
#include "collect/log_records.h"

namespace marey {
namespace {

class CaptureFile {
  public:
    explicit CaptureFile(const std::string& path)
        : path_(path), fd_(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) {
        if (fd_.get() < 0) fail();
    }

    /// The length, which is 0 if it does not start like a capture of the process.
    std::uint64_t bytes_if_of(std::int64_t pid) const {
        detail::FileHeader header{};
        struct stat status {};
        if (::fstat(fd_.get(), &status) != 0) fail();
        const ssize_t count = ::pread(fd_.get(), &header, sizeof header, 0);
        if (count < 0) fail();
        const bool is_capture = count == static_cast<ssize_t>(sizeof header) && header.pid == pid &&
                                std::memcmp(header.magic, detail::kFileMagic, sizeof header.magic) == 0;
        return is_capture ? static_cast<std::uint64_t>(status.st_size) : 0;
    }
    /// Appends a block with records of the journal to a file of this length. They fit into one block.
    void append(std::uint64_t length, const std::vector<std::byte>& records) const {
        detail::BlockHeader header{};
        header.magic = detail::kBlockMagic;
        header.kind = static_cast<std::uint16_t>(detail::BlockKind::Journal);
        header.blocks = 1;
        header.sequence = ~std::uint64_t{0};  // the last part of the journal
        header.committed = static_cast<decltype(header.committed)>(records.size());
        std::vector<std::byte> block(sizeof header);
        std::memcpy(block.data(), &header, sizeof header);
        block.insert(block.end(), records.begin(), records.end());
        const std::uint64_t at =
            (length + detail::kBlockBytes - 1) / detail::kBlockBytes * detail::kBlockBytes;
        if (::ftruncate(fd_.get(), static_cast<off_t>(at + detail::kBlockBytes)) != 0) fail();
        if (::pwrite(fd_.get(), block.data(), block.size(), static_cast<off_t>(at)) ==
            static_cast<ssize_t>(block.size()))
            return;
        const int error = errno;
        if (::ftruncate(fd_.get(), static_cast<off_t>(length)) == 0) errno = error;
        fail();
    }

  private:
    [[noreturn]] void fail() const { throw Error(path_ + ": " + std::strerror(errno)); }

    const std::string& path_;
    const Descriptor fd_;
};

}  // namespace

bool append_process_end(const std::string& capture, std::int64_t pid, const ProcessEnd& end) {
    const CaptureFile file(capture);
    const std::uint64_t length = file.bytes_if_of(pid);
    if (length == 0) return false;
    std::vector<std::byte> records;
    append_stream_record(records, detail::JournalKind::ProcessEnd,
                         detail::ProcessEndRecord{{}, end.exit_code, end.signal}, "");
    file.append(length, records);
    return true;
}

bool append_problems(const std::string& capture, std::int64_t pid, const std::vector<ProblemInfo>& problems) {
    const CaptureFile file(capture);
    const std::uint64_t length = file.bytes_if_of(pid);
    if (length == 0) return false;
    std::vector<std::byte> records;
    for (const ProblemInfo& problem : problems) {
        const detail::RunProblemRecord record{{},
                                              problem.count,
                                              static_cast<std::uint32_t>(problem.code.size()),
                                              static_cast<std::uint32_t>(problem.text.size())};
        const std::size_t before = records.size();
        append_stream_record(records, detail::JournalKind::RunProblem, record, problem.code + problem.text);
        if (sizeof(detail::BlockHeader) + records.size() <= detail::kBlockBytes) continue;
        records.resize(before);
        break;
    }
    if (!records.empty()) file.append(length, records);
    return true;
}

}  // namespace marey
