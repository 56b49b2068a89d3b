// flops_shapes.h: arithmetic on the sizes of arrays. In double precision, which cannot overflow: exact up to
// 2^53, and what becomes infinite is unknown.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace marey {

using Sizes = std::span<const std::int64_t>;

/// How many elements; 1 for an array without dimensions.
inline double elements(Sizes sizes) {
    if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return 0;  // before infinity comes in
    double count = 1;
    for (const std::int64_t size : sizes) count *= static_cast<double>(size);
    return count;
}

/// The sizes that two arrays have together; nullopt when they do not fit. Dimensions are paired from the
/// last, and one of size 1 is repeated.
inline std::optional<std::vector<std::int64_t>> broadcast(Sizes a, Sizes b) {
    if (a.size() < b.size()) std::swap(a, b);
    std::vector<std::int64_t> sizes(a.begin(), a.end());
    for (std::size_t i = 0; i < b.size(); ++i) {
        std::int64_t& size = sizes[a.size() - b.size() + i];
        if (size == 1) {
            size = b[i];
        } else if (b[i] != 1 && b[i] != size) {
            return std::nullopt;
        }
    }
    return sizes;
}

}  // namespace marey
