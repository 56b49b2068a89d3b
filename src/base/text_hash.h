// text_hash.h: a fast hash of short texts, for tables in memory. Not for files: it may change.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace marey {

inline std::uint64_t mix_hash(std::uint64_t a, std::uint64_t b) noexcept {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a ^ 0x9E3779B97F4A7C15u) * (b ^ 0xD6E8FEB86659FD93u);
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

inline std::uint64_t hash_text(std::string_view text) noexcept {
    const auto load = [](const char* from, std::size_t size) {
        std::uint64_t word = 0;
        std::memcpy(&word, from, size);
        return word;
    };
    const char* p = text.data();
    std::size_t left = text.size();
    std::uint64_t hash = left;
    for (; left > 16; p += 16, left -= 16) hash = mix_hash(load(p, 8) ^ hash, load(p + 8, 8));
    if (left >= 8) return mix_hash(load(p, 8) ^ hash, load(p + left - 8, 8));
    if (left >= 4) return mix_hash(load(p, 4) ^ hash, load(p + left - 4, 4));
    if (left == 0) return mix_hash(hash, 0);
    // First, middle and last: all bytes of texts of up to three bytes.
    const auto byte = [&](std::size_t i) {
        return static_cast<std::uint64_t>(static_cast<unsigned char>(p[i]));
    };
    return mix_hash(hash, byte(0) | byte(left / 2) << 8 | byte(left - 1) << 16);
}

}  // namespace marey
