// c_call_instructions.h: which instructions have called functions of C: those that then call a Python
// function are switched off, and what they call in C later is missing.
#pragma once

#include <Python.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace kymo::python {

/// One word for each, the last to come where several fall together: some may be forgotten, none is made up.
/// Guarded by the GIL.
class CCallInstructions {
  public:
    /// `offset`: that of the instruction in the code, as events say it.
    [[gnu::always_inline]] void note(PyObject* code, PyObject* offset) noexcept {
        const std::uint64_t mixed = mix(code, offset);
        tags_[mixed >> kShift] = tag(mixed);
    }
    /// Whether it has called one. Asked once: it is forgotten.
    bool take(PyObject* code, PyObject* offset) noexcept {
        const std::uint64_t mixed = mix(code, offset);
        if (tags_[mixed >> kShift] != tag(mixed)) return false;
        tags_[mixed >> kShift] = 0;
        return true;
    }
    void clear() noexcept { tags_.fill(0); }

  private:
    static constexpr unsigned kBits = 13;
    static constexpr unsigned kShift = 64 - kBits;
    static std::uint64_t mix(PyObject* code, PyObject* offset) noexcept {
        // Offsets are small: one digit.
        const std::uint64_t place = reinterpret_cast<PyLongObject*>(offset)->long_value.ob_digit[0];
        return (reinterpret_cast<std::uintptr_t>(code) ^ place << 40) * 0x9E3779B97F4A7C15;
    }
    static std::uint32_t tag(std::uint64_t mixed) noexcept { return static_cast<std::uint32_t>(mixed) | 1; }
    std::array<std::uint32_t, std::size_t{1} << kBits> tags_{};
};

}  // namespace kymo::python
