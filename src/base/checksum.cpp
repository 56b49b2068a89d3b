// checksum.cpp: eight bytes at a time; each step is invertible, so that no difference is lost.
#include "base/checksum.h"

#include <bit>
#include <cstring>

namespace marey {

namespace {

constexpr std::uint64_t kOdd1 = 0x9fb21c651e98df25;
constexpr std::uint64_t kOdd2 = 0xd6e8feb86659fd93;

std::uint64_t little_endian(std::uint64_t word) noexcept {
    if constexpr (std::endian::native == std::endian::big) return __builtin_bswap64(word);
    return word;
}

// Every operation is a permutation of the 64-bit numbers.
std::uint64_t mix(std::uint64_t state) noexcept {
    state *= kOdd1;
    state ^= state >> 32;
    state *= kOdd2;
    return state ^ state >> 29;
}

}  // namespace

std::uint64_t checksum64(std::span<const std::byte> bytes) noexcept {
    std::uint64_t state = mix(bytes.size() + kOdd2);
    while (!bytes.empty()) {
        std::uint64_t word = 0;
        const std::size_t taken = bytes.size() < sizeof word ? bytes.size() : sizeof word;
        std::memcpy(&word, bytes.data(), taken);
        state = mix(state ^ little_endian(word));
        bytes = bytes.subspan(taken);
    }
    return mix(state);
}

}  // namespace marey
