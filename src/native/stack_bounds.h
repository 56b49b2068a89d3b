// stack_bounds.h: the memory of the stack that contains an address.
#pragma once

#include <cstdint>

namespace marey {

struct StackBounds {
    std::uintptr_t low = 0;
    std::uintptr_t high = 0;  ///< one past the last byte

    bool holds(std::uintptr_t at) const noexcept { return at >= low && at < high; }
    bool operator==(const StackBounds&) const = default;
};

/// The stack of the calling thread that contains `at`, also one that the program made itself; empty if
/// nothing is mapped there. Reads /proc/self/maps; async-signal-safe.
StackBounds stack_bounds_at(std::uintptr_t at) noexcept;

}  // namespace marey
