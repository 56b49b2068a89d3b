// call_key.h: keys that identify the running calls of a thread.
#pragma once

#include <cstdint>

namespace marey::python {

/// The address of a call's frame or code; for a call into C, the address of its caller with a mark. Marks are
/// bits that are zero in addresses.
struct CallKey {
    static constexpr std::uintptr_t kC = 1;
    static constexpr std::uintptr_t kPart = 2;  ///< a running part of a generator's call; not for C
    static std::uintptr_t python(const void* frame) noexcept {
        return reinterpret_cast<std::uintptr_t>(frame);
    }
    static std::uintptr_t c(const void* frame) noexcept {
        return reinterpret_cast<std::uintptr_t>(frame) | kC;
    }
    /// A call into C that creates a thread, whose return must be noticed.
    static std::uintptr_t maker(const void* frame) noexcept { return c(frame) | 2; }
    static bool is_part(std::uintptr_t key) noexcept { return (key & 3) == kPart; }
    /// Whether an entry has this key, as a part or not.
    static bool is_of(std::uintptr_t entry, std::uintptr_t key) noexcept {
        return ((entry ^ key) & ~kPart) == 0;
    }
};

}  // namespace marey::python
