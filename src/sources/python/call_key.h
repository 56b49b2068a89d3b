// call_key.h: what the running calls of a thread are known by.
#pragma once

#include <cstdint>

namespace marey::python {

/// The address of a call's frame or code; of a call into C that of its caller, marked. The marks are bits
/// that addresses do not have.
struct CallKey {
    static constexpr std::uintptr_t kC = 1;
    static constexpr std::uintptr_t kPart = 2;  ///< of a call that can be suspended, while it runs; not of C
    static std::uintptr_t python(const void* frame) noexcept {
        return reinterpret_cast<std::uintptr_t>(frame);
    }
    static std::uintptr_t c(const void* frame) noexcept {
        return reinterpret_cast<std::uintptr_t>(frame) | kC;
    }
    /// The call into C that makes threads: its return is to be noticed.
    static std::uintptr_t maker(const void* frame) noexcept { return c(frame) | 2; }
    static bool is_part(std::uintptr_t key) noexcept { return (key & 3) == kPart; }
    /// Whether an entry is that of a key, as a part or not.
    static bool is_of(std::uintptr_t entry, std::uintptr_t key) noexcept {
        return ((entry ^ key) & ~kPart) == 0;
    }
};

}  // namespace marey::python
