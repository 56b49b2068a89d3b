// json_cursor.cpp: numbers, escapes and skipping entire values.
#include "json/json_cursor.h"

#include "base/utf8.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace marey {
namespace {

constexpr bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// Whether a character can be part of a number or of a word like true and NaN.
constexpr std::array<bool, 256> kScalarParts = [] {
    std::array<bool, 256> parts{};
    for (unsigned char c = '0'; c <= '9'; ++c) parts[c] = true;
    for (unsigned char c = 'a'; c <= 'z'; ++c) parts[c] = parts[c - 'a' + 'A'] = true;
    parts['+'] = parts['-'] = parts['.'] = true;
    return parts;
}();
inline bool is_scalar_part(char c) {
    return kScalarParts[static_cast<unsigned char>(c)];
}

/// Reads digits into `value` as far as they go; overflow is ignored, so count them.
inline const char* read_digits(const char* p, std::uint64_t& value) {
    if constexpr (std::endian::native == std::endian::little) {
        constexpr std::uint64_t kOnes = 0x0101010101010101;
        std::uint64_t word = 0;
        std::memcpy(&word, p, sizeof word);
        const std::uint64_t high = word & (kOnes * 0xF0), raised = (word + kOnes * 6) & (kOnes * 0xF0);
        if (((high ^ kOnes * 0x30) | (raised ^ kOnes * 0x30)) == 0) {  // eight digits
            word = (word & (kOnes * 0x0F)) * 2561 >> 8;
            word = (word & 0x00FF00FF00FF00FF) * 6553601 >> 16;
            value = value * 100'000'000 + ((word & 0x0000FFFF0000FFFF) * 42949672960001 >> 32);
            p += sizeof word;
        }
    }
    while (is_digit(*p)) value = value * 10 + static_cast<std::uint64_t>(*p++ - '0');
    return p;
}

bool read_hex(const char* p, std::uint32_t& code) {
    const auto [stop, error] = std::from_chars(p, p + 4, code, 16);
    return error == std::errc() && stop == p + 4;
}

/// The role of a character in skip_container.
enum class Mark : std::uint8_t { Other, Open, Close, Quote };
constexpr std::array<Mark, 256> kMarks = [] {
    std::array<Mark, 256> marks{};
    marks['{'] = marks['['] = Mark::Open;
    marks['}'] = marks[']'] = Mark::Close;
    marks['"'] = Mark::Quote;
    return marks;
}();

}  // namespace

bool scaled_decimal(std::string_view text, int decimals, std::int64_t& value) noexcept {
    const char* p = text.data();
    const char* const end = p + text.size();
    const bool negative = p != end && *p == '-';
    if (negative) ++p;
    // All digits as one number of up to 19, the rest counted by `exponent`.
    constexpr std::uint64_t kFull = 1'000'000'000'000'000'000;
    std::uint64_t digits = 0;
    int exponent = decimals;
    bool any = false, rounds_up = false, is_full = false;
    const auto add_digit = [&](char c, bool is_fraction) {
        any = true;
        if (!is_full && digits < kFull) {
            digits = digits * 10 + static_cast<std::uint64_t>(c - '0');
            if (is_fraction) --exponent;
            return;
        }
        if (!is_full) rounds_up = c >= '5';
        is_full = true;
        if (!is_fraction) ++exponent;
    };
    for (; p != end && is_digit(*p); ++p) add_digit(*p, false);
    if (p != end && *p == '.') {
        for (++p; p != end && is_digit(*p); ++p) add_digit(*p, true);
    }
    if (!any) return false;
    if (p != end && (*p == 'e' || *p == 'E')) {
        ++p;
        if (p != end && *p == '+') ++p;
        int power = 0;
        const auto [stop, error] = std::from_chars(p, end, power);
        if (stop == p || error == std::errc::invalid_argument) return false;
        if (error == std::errc::result_out_of_range || power > 10'000 || power < -10'000)
            power = *p == '-' ? -10'000 : 10'000;
        exponent += power;
        p = stop;
    }
    if (p != end) return false;
    for (; exponent < 0 && digits != 0; ++exponent) {
        rounds_up = digits % 10 >= 5;
        digits /= 10;
    }
    if (exponent < 0) rounds_up = false;
    if (exponent > 0 && digits != 0) {
        for (; exponent > 0; --exponent) {
            if (digits > std::numeric_limits<std::uint64_t>::max() / 10) return false;
            digits *= 10;
        }
        rounds_up = false;
    }
    if (rounds_up) ++digits;
    if (digits > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return false;
    value = negative ? -static_cast<std::int64_t>(digits) : static_cast<std::int64_t>(digits);
    return true;
}

bool JsonCursor::read_scaled(int decimals, std::int64_t& value) noexcept {
    peek();
    const char* p = at_;
    const bool negative = *p == '-';
    if (negative) ++p;
    // The usual form: up to 15 digits, a point, and no more decimals than are kept.
    std::uint64_t digits = 0;
    const char* const first = p;
    p = read_digits(p, digits);
    const auto whole = p - first;
    int kept = 0;
    if (*p == '.' && whole <= 15) {
        ++p;
        while (is_digit(*p) && kept < decimals) {
            digits = digits * 10 + static_cast<std::uint64_t>(*p++ - '0');
            ++kept;
        }
    }
    if (whole == 0 || whole > 15 || decimals > 3 || is_scalar_part(*p)) {
        const char* const start = at_;
        while (is_scalar_part(*at_)) ++at_;
        if (at_ >= end_) return false;
        return scaled_decimal({start, static_cast<std::size_t>(at_ - start)}, decimals, value);
    }
    for (; kept < decimals; ++kept) digits *= 10;
    at_ = p;
    value = negative ? -static_cast<std::int64_t>(digits) : static_cast<std::int64_t>(digits);
    return at_ < end_;
}

bool JsonCursor::read_any_number(JsonNumber& number) noexcept {
    const char* p = at_;
    const bool negative = *p == '-';
    if (negative) ++p;
    std::uint64_t digits = 0;
    const char* const first = p;
    while (is_digit(*p)) digits = digits * 10 + static_cast<std::uint64_t>(*p++ - '0');
    const auto count = p - first;
    if (count > 0 && count <= 18 && !is_scalar_part(*p)) [[likely]] {
        at_ = p;
        number.kind = JsonNumber::Kind::Int;
        number.integer = negative ? -static_cast<std::int64_t>(digits) : static_cast<std::int64_t>(digits);
        return at_ < end_;
    }
    const char* const start = at_;
    while (is_scalar_part(*at_)) ++at_;
    if (at_ >= end_) return false;
    if (count == 0) return false;
    if (const auto [stop, error] = std::from_chars(start, at_, number.integer);
        error == std::errc() && stop == at_) {
        number.kind = JsonNumber::Kind::Int;
        return true;
    }
    if (const auto [stop, error] = std::from_chars(start, at_, number.magnitude);
        error == std::errc() && stop == at_) {
        number.kind = JsonNumber::Kind::Unsigned;
        return true;
    }
    double real = 0;
    const auto [stop, error] = std::from_chars(start, at_, real);
    if (stop != at_ || error == std::errc::invalid_argument) return false;
    if (error == std::errc::result_out_of_range) {
        // Too small or too large: the sign of the exponent decides, a number without one is too large.
        const std::string_view text(start, static_cast<std::size_t>(at_ - start));
        const bool is_small = text.find("e-") != text.npos || text.find("E-") != text.npos;
        real = is_small ? 0.0 : std::numeric_limits<double>::infinity();
        if (negative) real = -real;
    }
    number.kind = JsonNumber::Kind::Real;
    number.real = real;
    return true;
}

JsonEscape read_json_escape(const char*& p, const char* end, std::string& out) {
    if (p >= end) return JsonEscape::Unknown;
    constexpr std::string_view kNames = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    const char c = *p++;
    if (const std::size_t index = kNames.find(c); index != kNames.npos) {
        out += kMeanings[index];
        return JsonEscape::Valid;
    }
    const auto keep = [&] {
        out += '\\';
        out += c;
        return JsonEscape::Unknown;
    };
    if (c != 'u') return keep();
    std::uint32_t code = 0;
    if (end - p < 4 || !read_hex(p, code)) return keep();
    p += 4;
    JsonEscape kind = JsonEscape::Valid;
    if (code >= 0xD800 && code < 0xE000) {
        constexpr std::uint32_t kReplacement = 0xFFFD;
        std::uint32_t low = 0;
        const bool has_second = code < 0xDC00 && end - p >= 2 && p[0] == '\\' && p[1] == 'u';
        const bool is_hex = has_second && end - p >= 6 && read_hex(p + 2, low);
        const bool is_pair = is_hex && low >= 0xDC00 && low < 0xE000;
        if (is_pair) p += 6;
        code = is_pair ? 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00) : kReplacement;
        if (!is_pair) kind = has_second && !is_hex ? JsonEscape::Unknown : JsonEscape::LoneSurrogate;
    }
    append_code_point(out, code);
    return kind;
}

void append_unescaped(std::string& out, std::string_view raw) {
    const char* p = raw.data();
    const char* const end = p + raw.size();
    while (p != end) {
        const char* const escape = std::find(p, end, '\\');
        out.append(p, escape);
        p = escape;
        if (p != end) read_json_escape(++p, end, out);
    }
}

bool JsonCursor::read_escaped(const char* first_escape, std::string_view& text) {
    unescaped_.assign(at_, first_escape);
    const char* p = first_escape;
    while (*p == '\\' && p < end_) {
        ++p;
        read_json_escape(p, end_, unescaped_);
        const char* const next = find_string_end(p);
        unescaped_.append(p, next);
        p = next;
    }
    if (p >= end_) {
        at_ = end_;
        return false;
    }
    at_ = p + 1;
    text = unescaped_;
    return true;
}

/// at_ is after the opening quote.
bool JsonCursor::skip_string() noexcept {
    const char* p = find_string_end(at_);
    while (p < end_ && *p == '\\') p = p + 2 > end_ ? end_ : find_string_end(p + 2);
    if (p >= end_) {
        at_ = end_;
        return false;
    }
    at_ = p + 1;
    return true;
}

/// at_ is at the opening bracket.
bool JsonCursor::skip_container() noexcept {
    std::size_t depth = 0;
    const char* p = at_;  // a local, because the compiler must assume that the text may alias at_
    while (true) {
        Mark mark = kMarks[static_cast<unsigned char>(*p)];
        while (mark == Mark::Other) mark = kMarks[static_cast<unsigned char>(*++p)];
        if (p >= end_) {
            at_ = end_;
            return false;
        }
        ++p;
        if (mark == Mark::Quote) {
            at_ = p;
            if (!skip_string()) return false;
            p = at_;
        } else if (mark == Mark::Open) {
            ++depth;
        } else if (--depth == 0) {
            at_ = p;
            return true;
        }
    }
}

bool JsonCursor::skip_value(std::string_view& text) noexcept {
    const char first = peek();
    const char* const start = at_;
    if (at_ >= end_) return false;
    bool is_whole = true;
    if (first == '"') {
        ++at_;
        is_whole = skip_string();
    } else if (first == '{' || first == '[') {
        is_whole = skip_container();
    } else {
        const char* p = start;
        while (is_scalar_part(*p)) ++p;
        at_ = p;
        is_whole = p > start && p < end_;
    }
    if (!is_whole) return false;
    text = {start, static_cast<std::size_t>(at_ - start)};
    return true;
}

}  // namespace marey
