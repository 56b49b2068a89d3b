// flops_formulas.h: the built-in formulas.
#pragma once

#include <optional>

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

}  // namespace marey
