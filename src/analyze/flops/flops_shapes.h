// flops_shapes.h: arithmetic on array sizes. Uses double precision, which cannot overflow: results are exact
// up to 2^53, and infinite results count as unknown.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace marey {

using Sizes = std::span<const std::int64_t>;

/// The number of elements; 1 for an array without dimensions.
inline double elements(Sizes sizes) {
    if (std::ranges::find(sizes, 0) != sizes.end()) return 0;  // avoids 0 * infinity
    double count = 1;
    for (const std::int64_t size : sizes) count *= static_cast<double>(size);
    return count;
}

/// The broadcast shape of two arrays; nullopt if they are incompatible. Dimensions are paired from the last
/// one, and size 1 is repeated.
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
