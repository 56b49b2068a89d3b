// decimal.h: integers as decimal digits, made for loops that print millions of them.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

namespace kymo {

/// ".000" to ".999".
inline constexpr auto kThousandths = [] {
    std::array<std::array<char, 4>, 1000> table{};
    for (int i = 0; i < 1000; ++i)
        table[i] = {'.', static_cast<char>('0' + i / 100), static_cast<char>('0' + i / 10 % 10),
                    static_cast<char>('0' + i % 10)};
    return table;
}();

/// Writes exactly three digits; writes no byte behind them. Returns the end. Requires value < 1000.
inline char* put_three_digits(char* out, std::uint32_t value) noexcept {
    std::memcpy(out, kThousandths[value].data() + 1, 3);
    return out + 3;
}

/// Writes `value` without leading zeros: up to 20 digits. Returns the end.
inline char* put_decimal(char* out, std::uint64_t value) noexcept {
    if (value >= 1000) {
        out = put_decimal(out, value / 1000);
        return put_three_digits(out, static_cast<std::uint32_t>(value % 1000));
    }
    const char* digits = kThousandths[value].data() + 1;
    if (value >= 100) return put_three_digits(out, static_cast<std::uint32_t>(value));
    if (value >= 10) *out++ = digits[1];
    *out++ = digits[2];
    return out;
}

/// Writes nanoseconds as microseconds with three decimals, exactly: at most 24 bytes. Returns the end.
inline char* put_micros(char* out, std::uint64_t ns) noexcept {
    const std::uint64_t whole = ns / 1000;
    // Unrolled for what occurs: below 1 ms, below 1 s, below 1000 s.
    if (whole <
        1000) {  // NOLINT(bugprone-branch-clone): in order of size, the largest are put like the smallest
        out = put_decimal(out, whole);
    } else if (whole < 1'000'000) {
        out = put_decimal(out, whole / 1000);
        out = put_three_digits(out, static_cast<std::uint32_t>(whole % 1000));
    } else if (whole < 1'000'000'000) {
        const std::uint32_t millis = static_cast<std::uint32_t>(whole / 1000);
        out = put_decimal(out, millis / 1000);
        out = put_three_digits(out, millis % 1000);
        out = put_three_digits(out, static_cast<std::uint32_t>(whole % 1000));
    } else {
        out = put_decimal(out, whole);
    }
    std::memcpy(out, kThousandths[ns % 1000].data(), 4);
    return out + 4;
}

}  // namespace kymo
