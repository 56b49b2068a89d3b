// json_cursor.h: reads JSON from a piece of memory that may hold only the beginning of it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace marey {

/// A number as it was written.
struct JsonNumber {
    enum class Kind : std::uint8_t { Int, Unsigned, Real };
    Kind kind = Kind::Int;
    union {
        std::int64_t integer = 0;
        std::uint64_t magnitude;  ///< Unsigned: above what an Int holds
        double real;
    };
};

/// Moves forward over JSON text. Lenient: control characters and invalid UTF-8 may occur in strings, and NaN
/// is skipped like any word. Functions return false when the text does not match or when it ends too early;
/// ran_out() distinguishes the two. After false the position is undefined: return to a known one.
class JsonCursor {
  public:
    /// The number of bytes that must be readable after the text: a '"', which ends every search, and the
    /// rest.
    static constexpr std::size_t kPadding = 64;

    JsonCursor(const char* begin, const char* end) noexcept : at_(begin), end_(end) {}

    const char* at() const noexcept { return at_; }
    const char* end() const noexcept { return end_; }
    void move_to(const char* place) noexcept { at_ = place; }
    bool ran_out() const noexcept { return at_ >= end_; }

    /// The next character that is not a space; '"' at the end.
    char peek() noexcept {
        if (!is_space(*at_)) return *at_;
        ++at_;
        if (is_space(*at_)) skip_spaces();
        return *at_;
    }
    bool take(char expected) noexcept {
        if (*at_ != expected && peek() != expected) return false;
        if (at_ >= end_) return false;
        ++at_;
        return true;
    }
    /// A string, unescaped. `text` is valid until the next call.
    bool read_string(std::string_view& text) {
        if (!take('"')) return false;
        const char* const stop = find_string_end(at_);
        if (stop >= end_) {
            at_ = end_;
            return false;
        }
        if (*stop != '"') [[unlikely]]
            return read_escaped(stop, text);
        text = {at_, static_cast<std::size_t>(stop - at_)};
        at_ = stop + 1;
        return true;
    }
    bool read_number(JsonNumber& number) noexcept {
        peek();
        if (read_short_integer(number.integer)) {
            number.kind = JsonNumber::Kind::Int;
            return true;
        }
        return read_any_number(number);
    }
    /// An integer of at most seven digits, without a sign and followed by another character. False: not such
    /// a number; nothing moved.
    bool read_short_integer(std::int64_t& value) noexcept {
        if constexpr (std::endian::native != std::endian::little) return false;
        constexpr std::uint64_t kOnes = 0x0101010101010101;
        std::uint64_t word = 0;
        std::memcpy(&word, at_, sizeof word);
        // The high bit of each byte: whether it is not a digit.
        const std::uint64_t digits = word ^ kOnes * '0';
        const std::uint64_t others = (((digits & ~(kOnes << 7)) + kOnes * (0x7F - 9)) | digits) & kOnes << 7;
        const int bits = std::countr_zero(others) & ~7;  // of the digits
        if (bits == 0 || others == 0) return false;
        const char next = static_cast<char>(word >> bits);
        if (next != ',' && next != '}' && !is_space(next) && next != ']') return false;
        word = digits << (64 - bits);  // leading zeros
        word = word * 2561 >> 8;
        word = (word & 0x00FF00FF00FF00FF) * 6553601 >> 16;
        value = static_cast<std::int64_t>((word & 0x0000FFFF0000FFFF) * 42949672960001 >> 32);
        at_ += bits / 8;
        return at_ < end_;
    }
    /// A number times 10^`decimals`, rounded to the nearest integer; false when it does not fit.
    bool read_scaled(int decimals, std::int64_t& value) noexcept;
    /// Skips a value of any kind and returns its text.
    bool skip_value(std::string_view& text) noexcept;
    bool skip_value() noexcept {
        std::string_view text;
        return skip_value(text);
    }

    /// The first '"' or '\' from `p` on.
    static const char* find_string_end(const char* p) noexcept {
        if constexpr (std::endian::native == std::endian::little) {
            constexpr std::uint64_t kOnes = 0x0101010101010101, kHighs = kOnes << 7;
            while (true) {
                std::uint64_t word = 0;
                std::memcpy(&word, p, sizeof word);
                const std::uint64_t quote = word ^ (kOnes * '"'), slash = word ^ (kOnes * '\\');
                const std::uint64_t hit = (((quote - kOnes) & ~quote) | ((slash - kOnes) & ~slash)) & kHighs;
                if (hit != 0) return p + std::countr_zero(hit) / 8;
                p += sizeof word;
            }
        }
        while (*p != '"' && *p != '\\') ++p;
        return p;
    }

  private:
    static bool is_space(char c) noexcept { return static_cast<unsigned char>(c) <= ' '; }
    void skip_spaces() noexcept {
        if constexpr (std::endian::native == std::endian::little) {
            constexpr std::uint64_t kOnes = 0x0101010101010101, kHighs = kOnes << 7;
            for (const char* p = at_;; p += 8) {
                // The high bit of each byte: whether it is above ' '.
                std::uint64_t word = 0;
                std::memcpy(&word, p, sizeof word);
                const std::uint64_t above = (((word & ~kHighs) + kOnes * (0x7F - ' ')) | word) & kHighs;
                if (above != 0) {
                    at_ = p + std::countr_zero(above) / 8;
                    return;
                }
            }
        }
        while (is_space(*at_)) ++at_;
    }
    bool read_any_number(JsonNumber& number) noexcept;
    bool read_escaped(const char* first_escape, std::string_view& text);
    bool skip_string() noexcept;
    bool skip_container() noexcept;

    const char* at_;
    const char* end_;
    std::string unescaped_;
};

/// How an escape is written.
enum class JsonEscape : std::uint8_t { Valid, Unknown, LoneSurrogate };

/// Reads the escape whose backslash is before `p`, appends its meaning to `out` and moves `p` behind it. An
/// unknown one is kept as it is written, and a lone surrogate becomes U+FFFD; strict readers reject both.
JsonEscape read_json_escape(const char*& p, const char* end, std::string& out);
/// Appends the value of a string, given what is between its quotes.
void append_unescaped(std::string& out, std::string_view raw);

/// The value of a complete text like "-12.5e3" times 10^`decimals`, rounded to the nearest integer; false
/// when the text is not a number or does not fit.
bool scaled_decimal(std::string_view text, int decimals, std::int64_t& value) noexcept;

}  // namespace marey
