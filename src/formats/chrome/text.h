// text.h: output of JSON text, optimized for loops that write millions of events.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "base/output_buffer.h"
#include "formats/decimal.h"
#include "json/json_writer.h"

namespace marey {

/// Text that is rendered once and copied often; padded, so that it can be copied in blocks of kBlock bytes.
class Stamp {
  public:
    static constexpr std::size_t kBlock = 64;

    Stamp() : Stamp(std::string()) {}
    explicit Stamp(std::string text) : text_(std::move(text)), size_(text_.size()) {
        text_.resize(size_ + kBlock, '\0');
    }
    /// May write up to kBlock bytes past the end that it returns.
    char* put(char* out) const noexcept {
        const char* const text = text_.data();
        std::memcpy(out, text, kBlock);
        for (std::size_t i = kBlock; i < size_; i += kBlock) std::memcpy(out + i, text + i, kBlock);
        return out + size_;
    }
    std::size_t size() const noexcept { return size_; }
    std::string_view text() const noexcept { return {text_.data(), size_}; }

  private:
    std::string text_;
    std::size_t size_;
};

/// A short constant that is copied as a whole block; only its size counts.
struct Word {
    static constexpr std::size_t kBytes = 32;
    std::array<char, kBytes> text{};
    std::uint8_t size = 0;

    constexpr Word() = default;
    constexpr Word(std::string_view word, std::string_view before, std::string_view after) {
        for (const std::string_view part : {before, word, after}) {
            for (const char c : part) text[size++] = c;
        }
    }
    char* put(char* out) const noexcept {
        std::memcpy(out, text.data(), kBytes);
        return out + size;
    }
};

/// Writes the start of a member, without the leading comma for the first member.
inline char* put_start(char* out, const Word& start, bool& is_first) noexcept {
    if (!is_first) return start.put(out);
    is_first = false;
    std::memcpy(out, start.text.data() + 1, Word::kBytes - 1);
    return out + start.size - 1;
}

/// Copies a literal. Returns the end.
template <std::size_t N>
char* put_literal(char* out, const char (&text)[N]) noexcept {
    std::memcpy(out, text, N - 1);
    return out + N - 1;
}

inline constexpr std::size_t kIntegerBytes = kDecimalBytes + 1;  ///< maximum size written by put_integer
inline char* put_integer(char* out, std::int64_t value) noexcept {
    if (value >= 0) return put_decimal(out, static_cast<std::uint64_t>(value));
    *out++ = '-';
    return put_decimal(out, 0 - static_cast<std::uint64_t>(value));
}

/// Appends "key":"value", with a comma before it unless the text is empty.
inline void append_json_member(std::string& members, std::string_view key, std::string_view value) {
    if (!members.empty()) members += ',';
    append_json_string(members, key);
    members += ':';
    append_json_string(members, value);
}

/// Appends to a file or to memory. Allocates only for strings.
class ChromeText {
  public:
    /// `buffer` must outlive this.
    explicit ChromeText(OutputBuffer& buffer) : buffer_(buffer) {}

    /// A buffer of `bytes` bytes, valid until the next call; take() appends the bytes written to it.
    char* room(std::size_t bytes) { return buffer_.reserve(bytes); }
    void take(char* end) noexcept { buffer_.advance(end); }

    /// The current position, and the text written since an earlier position; empty if it is no longer in
    /// memory.
    std::uint64_t position() const noexcept { return buffer_.position(); }
    std::string_view since(std::uint64_t position) const noexcept { return buffer_.written_since(position); }

    void put(char c) {
        char* const out = room(1);
        *out = c;
        take(out + 1);
    }
    void put(std::string_view text) {
        if (text.size() > kLarge) {
            buffer_.write(text);
            return;
        }
        char* const out = room(text.size());
        std::memcpy(out, text.data(), text.size());
        take(out + text.size());
    }
    void put(const Stamp& stamp) { take(stamp.put(room(stamp.size() + Stamp::kBlock))); }
    void integer(std::int64_t value) { take(put_integer(room(kIntegerBytes), value)); }
    void integer(std::uint64_t value) { take(put_decimal(room(kIntegerBytes), value)); }
    void real(double value) {
        scratch_.clear();
        append_json_number(scratch_, value);
        put(scratch_);
    }
    /// Writes any bytes as a valid JSON string.
    void string(std::string_view bytes) {
        scratch_.clear();
        append_json_string(scratch_, bytes);
        put(scratch_);
    }

  private:
    static constexpr std::size_t kLarge = 4096;

    OutputBuffer& buffer_;
    std::string scratch_;
};

}  // namespace marey
