// output_file.h: a buffered output file that appears whole or not at all, plain or gzip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>

namespace kymo {

/// Writes beside the target and renames on commit(), so that nobody ever sees half a file; without a commit
/// the target stays as it was. A path that ends in ".gz" is compressed. A target that is no regular file (a
/// pipe, a device) or that is open already (/dev/stdout, /dev/fd/3) is written in place. Used by one thread.
/// Every failure is a kymo::Error that names the target.
class OutputFile {
  public:
    /// Stays in the second-level cache between being filled and being copied by the kernel: a third faster
    /// than 1 MiB.
    static constexpr std::size_t kBufferBytes = std::size_t{1} << 18;

    explicit OutputFile(std::string path);
    /// To a stream instead, which must outlive this and gets what is written as it comes.
    explicit OutputFile(std::ostream& stream);
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    void write(std::string_view bytes);

    /// For hand-made formatting: room for at least `bytes` bytes, valid until the next call of any member.
    /// What was written there is taken over by advance(), given the end of it.
    char* reserve(std::size_t bytes) {
        if (static_cast<std::size_t>(limit_ - cursor_) < bytes) make_room(bytes);
        return cursor_;
    }
    void advance(char* end) noexcept { cursor_ = end; }
    /// How many bytes were written so far.
    std::uint64_t position() const noexcept {
        return flushed_ + static_cast<std::uint64_t>(cursor_ - buffer_.get());
    }
    /// The bytes from a position on; empty where some of them have left the buffer.
    std::string_view written_since(std::uint64_t position) const noexcept {
        if (position < flushed_) return {};
        const char* const from = buffer_.get() + (position - flushed_);
        return {from, static_cast<std::size_t>(cursor_ - from)};
    }

    /// Flushes, closes and renames into place. Call once; nothing may be written afterwards.
    void commit();

  private:
    class Compressor;
    static constexpr std::size_t kPieceBytes = std::size_t{1} << 16;

    void open_beside();
    void give_name();
    void make_room(std::size_t bytes);
    void flush(bool all);
    void write_to_disk(const char* bytes, std::size_t size);
    [[noreturn]] void fail(const char* what, int error) const;
    void abandon() noexcept;

    std::string path_;       ///< as given, for messages
    std::string target_;     ///< links resolved
    std::string temporary_;  ///< the file beside the target; empty while it has no name
    bool nameless_ = false;  ///< the file beside the target gets its name in commit()
    int file_ = -1;
    std::ostream* stream_ = nullptr;  ///< null: a file
    std::unique_ptr<char[]> buffer_;
    char* cursor_ = nullptr;
    char* limit_ = nullptr;
    std::uint64_t flushed_ = 0;  ///< bytes that came before those in the buffer
    std::unique_ptr<Compressor> compressor_;
};

}  // namespace kymo
