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

/// Writes a number below 1000 without leading zeros. Returns the end.
inline char* put_small_decimal(char* out, std::uint32_t value) noexcept {
    const char* digits = kThousandths[value].data() + 1;
    const unsigned skipped = value >= 100 ? 0u : value >= 10 ? 1u : 2u;
    out[0] = digits[skipped];
    if (skipped < 2) out[1] = digits[skipped + 1];
    if (skipped < 1) out[2] = digits[2];
    return out + 3 - skipped;
}

/// Writes `value` without leading zeros: up to 20 digits. Returns the end.
inline char* put_decimal(char* out, std::uint64_t value) noexcept {
    // Unrolled for what occurs.
    if (value < 1000) return put_small_decimal(out, static_cast<std::uint32_t>(value));
    if (value < 1'000'000) {
        const auto low = static_cast<std::uint32_t>(value);
        return put_three_digits(put_small_decimal(out, low / 1000), low % 1000);
    }
    if (value < 1'000'000'000) {
        const auto low = static_cast<std::uint32_t>(value);
        const std::uint32_t thousands = low / 1000;
        out = put_three_digits(put_small_decimal(out, thousands / 1000), thousands % 1000);
        return put_three_digits(out, low % 1000);
    }
    out = put_decimal(out, value / 1'000'000'000);
    const auto low = static_cast<std::uint32_t>(value % 1'000'000'000);
    out = put_three_digits(out, low / 1'000'000);
    out = put_three_digits(out, low / 1000 % 1000);
    return put_three_digits(out, low % 1000);
}

/// Writes nanoseconds as microseconds with three decimals, exactly: at most 24 bytes. Returns the end.
inline char* put_micros(char* out, std::uint64_t ns) noexcept {
    out = put_decimal(out, ns / 1000);
    std::memcpy(out, kThousandths[ns % 1000].data(), 4);
    return out + 4;
}

}  // namespace kymo
