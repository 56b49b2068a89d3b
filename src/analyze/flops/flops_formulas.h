// flops_formulas.h: the built-in formulas, and arithmetic on array sizes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <marey/flops.h>

namespace marey {

struct BuiltInFlops {
    std::string name;
    std::optional<double> (*formula)(const OperationInputs&);
};

/// Sorted by name.
std::span<const BuiltInFlops> built_in_flops();
/// Whether PyTorch's profiler has a formula for it too. None of these operators calls another one, so that
/// sums count everything once.
bool is_counted_by_pytorch(std::string_view name) noexcept;

// Sizes are multiplied in double precision, which cannot overflow: results are exact up to 2^53, and infinite
// ones count as unknown.
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
