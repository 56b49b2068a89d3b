// input_text.h: a text file, plain or gzip, read piece by piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/work_meter.h"

namespace marey {

/// The origin of the bytes.
class ByteSource {
  public:
    virtual ~ByteSource() = default;
    /// Up to `size` bytes; 0: there are no more, or damage() gives the reason. Throws marey::Error if
    /// compressed bytes expand too much (ExpansionLimit).
    virtual std::size_t read(char* to, std::size_t size) = 0;
    /// Which part of the file was read, 0 to 1; 0 if unknown.
    virtual double fraction_read() const = 0;
    /// Empty, or why the bytes ended before the end.
    virtual const std::string& damage() const = 0;
};

/// A file, decompressed if it is gzip. Throws marey::Error when it cannot be opened.
std::unique_ptr<ByteSource> open_source(const std::string& path);
/// Bytes in memory, which must outlive the source.
std::unique_ptr<ByteSource> memory_source(std::string_view bytes);

/// The part of a text that is in memory: [begin, end), followed by '"' and as many bytes as a JsonCursor may
/// read after its text.
class InputText {
  public:
    explicit InputText(std::unique_ptr<ByteSource> source, std::size_t piece_bytes = 128 << 10);

    const char* begin() const noexcept { return buffer_.data(); }
    const char* end() const noexcept { return buffer_.data() + size_; }
    /// Discards the text before `from` and reads more after the rest, which moves to begin(). False: there is
    /// no more, and the kept part is all that is left.
    bool read_on(const char* from);
    /// The position of begin() in the entire text.
    std::size_t offset() const noexcept { return offset_; }
    const ByteSource& source() const noexcept { return *source_; }

  private:
    void mark_end();

    void note_progress();

    std::unique_ptr<ByteSource> source_;
    std::optional<WorkMeter> meter_;  ///< once it is known how much was read
    std::uint64_t counted_ = 0;
    std::vector<char> buffer_;
    std::size_t size_ = 0;
    std::size_t offset_ = 0;
};

}  // namespace marey
