// output_file.cpp: a buffered output file that appears complete or not at all, plain or gzip.
#include "base/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <ostream>

#include <marey/error.h>

#if MAREY_HAVE_ZLIB
#include <zlib.h>
#endif

namespace marey {

#if MAREY_HAVE_ZLIB
/// A gzip stream. Level 1: four times as fast as the default on traces, for a fifth more bytes.
class OutputFile::Compressor {
  public:
    explicit Compressor(OutputFile& file) : file_(file), out_(new char[kBufferBytes]) {
        constexpr int kGzip = 15 + 16;  // the largest window, with a gzip header
        if (deflateInit2(&stream_, 1, Z_DEFLATED, kGzip, 9, Z_DEFAULT_STRATEGY) != Z_OK)
            throw Error(file.path_ + ": cannot start compression: out of memory");
    }
    ~Compressor() { deflateEnd(&stream_); }

    void compress(const char* bytes, std::size_t size, bool last) {
        // zlib counts in 32 bits.
        do {
            const auto part = static_cast<uInt>(std::min<std::size_t>(size, 1u << 30));
            stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes));
            stream_.avail_in = part;
            bytes += part;
            size -= part;
            int state = Z_OK;
            do {
                stream_.next_out = reinterpret_cast<Bytef*>(out_.get());
                stream_.avail_out = static_cast<uInt>(kBufferBytes);
                state = deflate(&stream_, last && size == 0 ? Z_FINISH : Z_NO_FLUSH);
                file_.write_to_disk(out_.get(), kBufferBytes - stream_.avail_out);
            } while (stream_.avail_out == 0 && state != Z_STREAM_END);
        } while (size > 0);
    }

  private:
    OutputFile& file_;
    std::unique_ptr<char[]> out_;
    z_stream stream_{};
};
#else
class OutputFile::Compressor {
  public:
    explicit Compressor(OutputFile& file) {
        throw Error(file.path_ + ": this Marey was built without zlib and cannot write .gz files");
    }
    void compress(const char*, std::size_t, bool) {}
};
#endif

namespace {

/// The descriptor that a path such as /dev/fd/3 names; -1: none.
int descriptor_of(const std::string& path) {
    constexpr std::string_view kFolder = "/dev/fd/";
    if (path == "/dev/stdout") return STDOUT_FILENO;
    if (path == "/dev/stderr") return STDERR_FILENO;
    if (!path.starts_with(kFolder)) return -1;
    int descriptor = -1;
    const char* const end = path.data() + path.size();
    const auto [rest, error] = std::from_chars(path.data() + kFolder.size(), end, descriptor);
    return error == std::errc() && rest == end ? descriptor : -1;
}

/// Whether a link could have been made by another user to redirect the output. The link that the path ends
/// with always counts; others count where anybody can put one, as in /tmp.
bool is_foreign(const std::filesystem::path& folder, const struct stat& link, bool is_last) {
    if (link.st_uid == ::geteuid() || link.st_uid == 0) return false;
    constexpr mode_t kShared = S_ISVTX | S_IWOTH;
    struct stat info {};
    return is_last || (::stat(folder.c_str(), &info) == 0 && (info.st_mode & kShared) == kShared &&
                       info.st_uid != link.st_uid);
}

/// The first foreign link on the way to a file; empty if there is none.
std::string foreign_link(const std::string& path) {
    namespace fs = std::filesystem;
    constexpr int kMaxLinks = 40;  // as the kernel
    std::error_code error;
    const fs::path whole = fs::absolute(path, error);
    std::deque<fs::path> rest(whole.begin(), whole.end());
    fs::path folder;
    for (int links = 0; !rest.empty() && links < kMaxLinks;) {
        const fs::path part = rest.front();
        rest.pop_front();
        if (part.is_absolute()) folder.clear();
        const fs::path next = part == ".." ? folder.parent_path() : folder / part;
        struct stat info {};
        if (::lstat(next.c_str(), &info) != 0) return "";
        if (!S_ISLNK(info.st_mode)) {
            folder = next;
            continue;
        }
        if (is_foreign(folder, info, rest.empty())) return next.string();
        const fs::path target = fs::read_symlink(next, error);
        rest.insert(rest.begin(), target.begin(), target.end());
        ++links;
    }
    return "";
}

/// The process's umask. Reading it with umask() would change it for a moment, which other threads could see.
mode_t creation_mask() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("Umask:"))
            return static_cast<mode_t>(std::strtoul(line.c_str() + 6, nullptr, 8));
    }
    const mode_t mask = ::umask(0);
    ::umask(mask);
    return mask;
}

}  // namespace

std::string resolve_output(const std::string& path) {
    if (path.empty()) throw Error("the name of the output file is empty");
    if (descriptor_of(path) >= 0) return "";
    if (const std::string link = foreign_link(path); !link.empty())
        throw Error(path + ": cannot write: " + (link == path ? "the link" : link) +
                    " belongs to another user; name the file that it leads to");
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return path;
    if (S_ISDIR(info.st_mode)) throw Error(path + ": cannot write: " + std::strerror(EISDIR));
    if (!S_ISREG(info.st_mode)) return "";
    if (::access(path.c_str(), W_OK) != 0) throw Error(path + ": cannot write: " + std::strerror(errno));
    const std::unique_ptr<char, decltype(&std::free)> resolved(::realpath(path.c_str(), nullptr), &std::free);
    return resolved ? resolved.get() : path;
}

OutputFile::OutputFile(std::string path, unsigned permissions)
    : path_(std::move(path)), target_(resolve_output(path_)) {
    if (target_.empty()) {
        // A file that is open already may contain more than this output.
        const int open_already = descriptor_of(path_);
        file_ = open_already >= 0 ? ::fcntl(open_already, F_DUPFD_CLOEXEC, 0)
                                  : ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
        if (file_ < 0) fail("cannot write", errno);
    } else {
        struct stat info {};
        const bool exists = ::stat(target_.c_str(), &info) == 0;
        open_beside();
        // A file system without modes is not a reason to fail.
        const mode_t mode = exists ? info.st_mode & 07777 : permissions & ~creation_mask();
        if (::fchmod(file_, mode) != 0) errno = 0;
    }
    try {
        constexpr std::string_view kGzipSuffix = ".gz";
        if (path_.size() > kGzipSuffix.size() && path_.ends_with(kGzipSuffix))
            compressor_ = std::make_unique<Compressor>(*this);
        use(std::unique_ptr<char[]>(new char[kBufferBytes]), kBufferBytes);
    } catch (...) {
        abandon();
        throw;
    }
}

OutputFile::OutputFile(std::ostream& stream) : path_("the output stream"), stream_(&stream) {
    use(std::unique_ptr<char[]>(new char[kBufferBytes]), kBufferBytes);
}

OutputFile::~OutputFile() {
    abandon();
}

void OutputFile::open_beside() {
    // A file without a name disappears by itself if we are killed; not every file system supports it, and
    // naming it later goes through /proc.
    const std::size_t slash = target_.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : target_.substr(0, slash + 1);
    if (::access("/proc/self/fd", X_OK) == 0)
        file_ = ::open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
    nameless_ = file_ >= 0;
    if (nameless_) return;
    temporary_ = target_ + ".XXXXXX";
    file_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
    if (file_ >= 0) return;
    const int error = errno;
    temporary_.clear();
    fail("cannot create", error);
}

void OutputFile::link_name() {
    const std::string self = "/proc/self/fd/" + std::to_string(file_);
    const std::string stem = target_ + "." + std::to_string(::getpid()) + ".";
    for (int attempt = 0; attempt < 100; ++attempt) {
        const std::string name = stem + std::to_string(attempt);
        if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
            temporary_ = name;
            return;
        }
        if (errno != EEXIST) break;
    }
    fail("cannot create", errno);
}

void OutputFile::write(std::string_view bytes) {
    if (bytes.size() >= kBufferBytes) {
        const std::size_t gap = (kPieceBytes - position() % kPieceBytes) % kPieceBytes;
        append(bytes.substr(0, gap));
        flush(true);
        bytes.remove_prefix(gap);
        const std::size_t whole = bytes.size() - bytes.size() % kPieceBytes;
        write_out(bytes.data(), whole);
        bytes.remove_prefix(whole);
    }
    append(bytes);
}

void OutputFile::append(std::string_view bytes) {
    while (!bytes.empty()) {
        if (cursor_ == limit_) flush(false);
        const std::size_t part = std::min(bytes.size(), static_cast<std::size_t>(limit_ - cursor_));
        std::memcpy(cursor_, bytes.data(), part);
        cursor_ += part;
        bytes.remove_prefix(part);
    }
}

void OutputFile::make_room(std::size_t bytes) {
    flush(false);
    if (static_cast<std::size_t>(limit_ - cursor_) >= bytes) return;
    flush(true);
    use(std::unique_ptr<char[]>(new char[bytes]), bytes);
}

void OutputFile::flush(bool all) {
    std::size_t size = this->size();
    std::size_t kept = 0;
    // Complete, aligned pieces let the page cache use large pages and touch each only once.
    if (!all && size > kPieceBytes) kept = size % kPieceBytes;
    size -= kept;
    write_out(buffer_.get(), size);
    std::memmove(buffer_.get(), buffer_.get() + size, kept);
    cursor_ = buffer_.get() + kept;
}

/// Writes bytes out; they count as flushed.
void OutputFile::write_out(const char* bytes, std::size_t size) {
    if (size == 0) return;
    if (compressor_) {
        compressor_->compress(bytes, size, false);
    } else {
        write_to_disk(bytes, size);
    }
    flushed_ += size;
}

void OutputFile::write_to_disk(const char* bytes, std::size_t size) {
    if (stream_ != nullptr) {
        if (!stream_->write(bytes, static_cast<std::streamsize>(size))) fail("cannot write", EIO);
        return;
    }
    while (size > 0) {
        const ssize_t written = ::write(file_, bytes, size);
        if (written < 0) {
            if (errno == EINTR) continue;
            fail("cannot write", errno);
        }
        bytes += written;
        size -= static_cast<std::size_t>(written);
    }
}

void OutputFile::commit() {
    flush(true);
    if (compressor_) compressor_->compress(nullptr, 0, true);
    if (stream_ != nullptr) {
        if (!stream_->flush()) fail("cannot write", EIO);
        return;
    }
    if (nameless_) link_name();
    const int closed = ::close(file_);
    file_ = -1;
    if (closed != 0) fail("cannot write", errno);
    if (temporary_.empty()) return;
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail("cannot rename into place", errno);
    temporary_.clear();
}

void OutputFile::fail(const char* what, int error) const {
    throw Error(path_ + ": " + what + ": " + std::strerror(error));
}

void OutputFile::abandon() noexcept {
    if (file_ >= 0) ::close(file_);
    file_ = -1;
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
    temporary_.clear();
}

}  // namespace marey
