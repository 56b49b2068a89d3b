// engine_ranges.h: the names of ranges of PyTorch's autograd engine.
#pragma once

#include <string_view>

namespace marey {

/// Around each node of a backward pass, on whatever thread the engine chose.
inline bool is_engine_range(std::string_view name) noexcept {
    return name.starts_with("autograd::engine::evaluate_function: ");
}

}  // namespace marey
