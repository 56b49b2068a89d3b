// torch_names.h: PyTorch's names by which its operators and the ranges of its autograd engine are recognised.
// A trace, also an imported one, has no other sign of them. The operators' formulas are in analyze/flops.
#pragma once

#include <string_view>

namespace marey {

/// An operator of PyTorch's own library. Where there is one, times and ids follow PyTorch's conventions.
inline bool is_torch_operator(std::string_view name) noexcept {
    return name.starts_with("aten::");
}

/// Before the name of a node of a backward pass: the range around it, on whatever thread the engine chose.
inline constexpr std::string_view kEngineRange = "autograd::engine::evaluate_function: ";
inline bool is_engine_range(std::string_view name) noexcept {
    return name.starts_with(kEngineRange);
}

/// The node that adds to a gradient, and the operators by which it takes or adds an array.
inline constexpr std::string_view kAccumulateGradient = "torch::autograd::AccumulateGrad";
inline bool accumulates_gradient(std::string_view name) noexcept {
    return name == "aten::detach" || name == "aten::add_";
}

}  // namespace marey
