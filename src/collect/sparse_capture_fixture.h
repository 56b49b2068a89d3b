// sparse_capture_fixture.h: for fuzzing: captures without the empty ends of their blocks, so that inputs are
// small.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <marey/detail/log_format.h>

namespace marey::testing {

inline constexpr std::byte kSparseMark{0x53};

/// The mark, then for each block the number of its bytes up to the last nonzero one (16 bits), and these
/// bytes.
inline std::vector<std::byte> to_sparse(std::span<const std::byte> file) {
    std::vector<std::byte> sparse{kSparseMark};
    while (!file.empty()) {
        const auto block = file.first(std::min(file.size(), detail::kBlockBytes));
        file = file.subspan(block.size());
        std::size_t used = block.size();
        while (used != 0 && block[used - 1] == std::byte{0}) --used;
        sparse.push_back(static_cast<std::byte>(used));
        sparse.push_back(static_cast<std::byte>(used >> 8));
        sparse.insert(sparse.end(), block.begin(), block.begin() + static_cast<std::ptrdiff_t>(used));
    }
    return sparse;
}

/// The inverse, for any bytes. Input without the mark is already a file. At most 64 blocks.
inline std::vector<std::byte> from_sparse(std::span<const std::byte> input) {
    if (input.empty() || input[0] != kSparseMark) return {input.begin(), input.end()};
    std::vector<std::byte> file;
    for (input = input.subspan(1); input.size() >= 2 && file.size() < 64 * detail::kBlockBytes;) {
        const std::size_t stated =
            std::to_integer<std::size_t>(input[0]) | std::to_integer<std::size_t>(input[1]) << 8;
        input = input.subspan(2);
        const std::size_t used = std::min({stated, input.size(), detail::kBlockBytes});
        const std::size_t at = file.size();
        file.resize(at + detail::kBlockBytes);
        if (used != 0) std::memcpy(file.data() + at, input.data(), used);
        input = input.subspan(used);
    }
    return file;
}

}  // namespace marey::testing
