// decimal.h: prints integers in decimal, optimized for millions of numbers.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace marey {

/// ".000" to ".999".
inline constexpr auto kThousandths = [] {
    std::array<std::array<char, 4>, 1000> table{};
    for (int i = 0; i < 1000; ++i)
        table[i] = {'.', static_cast<char>('0' + i / 100), static_cast<char>('0' + i / 10 % 10),
                    static_cast<char>('0' + i % 10)};
    return table;
}();

/// "0" to "999"; the fourth byte holds the number of digits.
inline constexpr auto kSmallNumbers = [] {
    std::array<std::array<char, 4>, 1000> table{};
    for (int i = 0; i < 1000; ++i) {
        int size = 0;
        if (i >= 100) table[i][size++] = static_cast<char>('0' + i / 100);
        if (i >= 10) table[i][size++] = static_cast<char>('0' + i / 10 % 10);
        table[i][size++] = static_cast<char>('0' + i % 10);
        table[i][3] = static_cast<char>(size);
    }
    return table;
}();

/// The eight digits of a number below 10^8, one per byte (0 to 9), the first digit in the lowest byte.
/// Divides in parallel lanes: two of four digits, then four of two, then eight of one.
inline std::uint64_t eight_digits(std::uint32_t value) noexcept {
    const std::uint64_t fours = value / 10000 | std::uint64_t{value % 10000} << 32;
    const std::uint64_t hundreds = (fours * 10486 >> 20) & 0x0000'007F'0000'007F;
    const std::uint64_t twos = hundreds | (fours - hundreds * 100) << 16;
    const std::uint64_t tens = (twos * 103 >> 10) & 0x000F'000F'000F'000F;
    return tens | (twos - tens * 10) << 8;
}

/// The maximum number of bytes that the functions below write, up to 8 more than the size they return.
inline constexpr std::size_t kDecimalBytes = 28;

/// Writes `value` without leading zeros, up to 20 digits. Returns the end of the digits.
inline char* put_decimal(char* out, std::uint64_t value) noexcept {
    static_assert(std::endian::native == std::endian::little);
    if (value < 1000) {
        std::memcpy(out, kSmallNumbers[value].data(), 4);
        return out + kSmallNumbers[value][3];
    }
    constexpr std::uint64_t kZeros = 0x3030'3030'3030'3030;
    if (value < 100'000'000) {
        const std::uint64_t digits = eight_digits(static_cast<std::uint32_t>(value));
        const int leading = std::countr_zero(digits) & ~7;  // in bits
        const std::uint64_t text = (digits | kZeros) >> leading;
        std::memcpy(out, &text, 8);
        return out + 8 - leading / 8;
    }
    out = put_decimal(out, value / 100'000'000);
    const std::uint64_t text = eight_digits(static_cast<std::uint32_t>(value % 100'000'000)) | kZeros;
    std::memcpy(out, &text, 8);
    return out + 8;
}

/// Writes nanoseconds exactly as microseconds with three decimals, up to 21 characters. Returns the end.
inline char* put_micros(char* out, std::uint64_t ns) noexcept {
    out = put_decimal(out, ns / 1000);
    std::memcpy(out, kThousandths[ns % 1000].data(), 4);
    return out + 4;
}

}  // namespace marey
