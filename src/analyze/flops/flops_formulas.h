// flops_formulas.h: the built-in formulas.
#pragma once

#include <optional>
#include <span>
#include <string>

#include <marey/flops.h>

namespace marey {

struct BuiltInFlops {
    std::string name;
    std::optional<double> (*formula)(const OperationInputs&);
};

/// Sorted by name.
std::span<const BuiltInFlops> built_in_flops();

}  // namespace marey
