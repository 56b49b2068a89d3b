// input_text.cpp: read(2) or zlib into one buffer that grows only when a value does not fit.
#include "json/input_text.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include <marey/error.h>

#include "base/expansion_limit.h"
#include "base/input_file.h"
#include "json/json_cursor.h"

#if MAREY_HAVE_ZLIB
#include <zlib.h>
#endif

namespace marey {
namespace {

/// A file as it is.
class FileSource : public ByteSource {
  public:
    explicit FileSource(const std::string& path, struct stat status = {}) : fd_(open_input(path, status)) {
        if (S_ISREG(status.st_mode)) size_ = static_cast<double>(status.st_size);
    }

    std::size_t read(char* to, std::size_t size) override {
        while (true) {
            const ssize_t count = ::read(fd_.get(), to, size);
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) damage_ = std::strerror(errno);
            if (count <= 0) return 0;
            read_ += static_cast<double>(count);
            return static_cast<std::size_t>(count);
        }
    }
    double fraction_read() const override { return size_ > 0 ? std::min(read_ / size_, 1.0) : 0; }
    const std::string& damage() const override { return damage_; }

  private:
    const Descriptor fd_;
    double size_ = 0;
    double read_ = 0;
    std::string damage_;
};

class MemorySource final : public ByteSource {
  public:
    explicit MemorySource(std::string_view bytes) : bytes_(bytes) {}
    std::size_t read(char* to, std::size_t size) override {
        const std::size_t count = std::min(size, bytes_.size() - read_);
        std::memcpy(to, bytes_.data() + read_, count);
        read_ += count;
        return count;
    }
    double fraction_read() const override {
        return bytes_.empty() ? 1 : static_cast<double>(read_) / static_cast<double>(bytes_.size());
    }
    const std::string& damage() const override { return damage_; }

  private:
    std::string_view bytes_;
    std::size_t read_ = 0;
    std::string damage_;
};

constexpr unsigned char kGzipMagic[] = {0x1F, 0x8B};

/// Another source, decompressed if it starts like gzip: any number of members, one after another.
class UnzippedSource final : public ByteSource {
  public:
    UnzippedSource(std::unique_ptr<ByteSource> packed, const std::string& name)
        : packed_(std::move(packed)), limit_(name) {
        fill();
        if (have_ == 1) fill();
        is_gzip_ = have_ >= 2 && std::memcmp(input_.data(), kGzipMagic, sizeof kGzipMagic) == 0;
#if MAREY_HAVE_ZLIB
        if (is_gzip_ && ::inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK) throw Error("zlib: out of memory");
#else
        if (is_gzip_) throw Error("this Marey was built without zlib and cannot read gzip files");
#endif
    }
    ~UnzippedSource() override {
#if MAREY_HAVE_ZLIB
        if (is_gzip_) ::inflateEnd(&stream_);
#endif
    }

    std::size_t read(char* to, std::size_t size) override {
        if (is_gzip_) return unzip(to, size);
        if (have_ == 0) return packed_->read(to, size);
        const std::size_t count = std::min(size, have_);
        std::memcpy(to, input_.data() + used_, count);
        used_ += count;
        have_ -= count;
        return count;
    }
    double fraction_read() const override {
        return packed_->fraction_read();
    }
    const std::string& damage() const override {
        return damage_.empty() ? packed_->damage() : damage_;
    }

  private:
    /// Appends more input.
    bool fill() {
        if (have_ > 0 && used_ > 0) std::memmove(input_.data(), input_.data() + used_, have_);
        used_ = 0;
        const std::size_t count = packed_->read(input_.data() + have_, input_.size() - have_);
        have_ += count;
        return count > 0;
    }

#if MAREY_HAVE_ZLIB
    std::size_t unzip(char* to, std::size_t size) {
        size = std::min<std::size_t>(size, 1 << 30);
        stream_.next_out = reinterpret_cast<Bytef*>(to);
        stream_.avail_out = static_cast<uInt>(size);
        while (stream_.avail_out == size && damage_.empty()) {
            if (have_ == 0 && !fill()) {
                if (!between_members_) damage_ = "the compressed data is truncated";
                break;
            }
            if (between_members_ && !begin_member()) break;
            stream_.next_in = reinterpret_cast<Bytef*>(input_.data() + used_);
            stream_.avail_in = static_cast<uInt>(have_);
            const int status = ::inflate(&stream_, Z_NO_FLUSH);
            limit_.add_packed(have_ - stream_.avail_in);
            limit_.add_unpacked(size - stream_.avail_out);
            used_ += have_ - stream_.avail_in;
            have_ = stream_.avail_in;
            if (status == Z_STREAM_END) {
                between_members_ = true;
            } else if (status != Z_OK && status != Z_BUF_ERROR) {
                damage_ = "the compressed data is damaged";
            }
        }
        return size - stream_.avail_out;
    }
    /// False: the rest is not another member, and gzip itself would ignore it.
    bool begin_member() {
        if (have_ < 2) fill();
        if (have_ < 2 || std::memcmp(input_.data() + used_, kGzipMagic, sizeof kGzipMagic) != 0) return false;
        between_members_ = false;
        return ::inflateReset(&stream_) == Z_OK;
    }
    z_stream stream_{};
    bool between_members_ = false;
#else
    std::size_t unzip(char*, std::size_t) {
        return 0;
    }
#endif

    std::unique_ptr<ByteSource> packed_;
    ExpansionLimit limit_;
    std::array<char, 64 * 1024> input_;
    std::size_t used_ = 0;
    std::size_t have_ = 0;
    bool is_gzip_ = false;
    std::string damage_;
};

}  // namespace

std::unique_ptr<ByteSource> open_source(const std::string& path) {
    try {
        return std::make_unique<UnzippedSource>(std::make_unique<FileSource>(path), path);
    } catch (const Error& error) {
        const std::string text = error.what();
        throw Error(text.starts_with(path) ? text : path + ": " + text);
    }
}

std::unique_ptr<ByteSource> memory_source(std::string_view bytes) {
    return std::make_unique<UnzippedSource>(std::make_unique<MemorySource>(bytes), "");
}

InputText::InputText(std::unique_ptr<ByteSource> source, std::size_t piece_bytes)
    : source_(std::move(source)), buffer_(piece_bytes + JsonCursor::kPadding) {
    mark_end();
}

bool InputText::read_on(const char* from) {
    const std::size_t kept = static_cast<std::size_t>(end() - from);
    const std::size_t forgotten = size_ - kept;
    // The kept part fills more than half: it belongs together and needs more space.
    const std::size_t room = buffer_.size() - JsonCursor::kPadding;
    if (kept > room / 2) {
        std::vector<char> larger(2 * room + JsonCursor::kPadding);
        std::memcpy(larger.data(), from, kept);
        buffer_ = std::move(larger);
    } else {
        std::memmove(buffer_.data(), from, kept);
    }
    offset_ += forgotten;
    size_ = kept;
    const std::size_t count =
        source_->read(buffer_.data() + size_, buffer_.size() - JsonCursor::kPadding - size_);
    size_ += count;
    mark_end();
    note_progress();
    return count > 0;
}

void InputText::note_progress() {
    constexpr std::uint64_t kWhole = 1000;
    const auto read = static_cast<std::uint64_t>(source_->fraction_read() * kWhole);
    if (read == counted_) return;
    if (!meter_) meter_.emplace(kWhole);
    meter_->add(read - counted_);
    counted_ = read;
}

void InputText::mark_end() {
    std::memset(buffer_.data() + size_, 0, JsonCursor::kPadding);
    buffer_[size_] = '"';
}

}  // namespace marey
