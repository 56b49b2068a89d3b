// c_call_instructions.h: remembers which instructions have called C functions. Instructions that then call a
// Python function are switched off, and their later C calls are missing.
#pragma once

#include <Python.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace marey::python {

/// A hash table with one word per slot that keeps the newest entry: some entries may be forgotten, and false
/// ones are very unlikely. Guarded by the GIL.
class CCallInstructions {
  public:
    /// `offset`: the offset of the instruction in the code, as in events.
    [[gnu::always_inline]] void note(PyObject* code, PyObject* offset) noexcept {
        const std::uint32_t tag = tag_of(code, offset);
        tags_[place(tag)] = tag;
    }
    /// Whether it has called a C function. Removes the entry.
    bool take(PyObject* code, PyObject* offset) noexcept {
        const std::uint32_t tag = tag_of(code, offset);
        if (tags_[place(tag)] != tag) return false;
        tags_[place(tag)] = 0;
        return true;
    }
    void clear() noexcept { tags_.fill(0); }

  private:
    static constexpr std::size_t kTags = 8192;
    static std::uint32_t tag_of(PyObject* code, PyObject* offset) noexcept {
        // Offsets are small (one digit) and even.
        const std::uint32_t digit = reinterpret_cast<PyLongObject*>(offset)->long_value.ob_digit[0];
        return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(code) >> 4) ^ digit << 19;
    }
    static std::size_t place(std::uint32_t tag) noexcept { return (tag ^ tag >> 17) % kTags; }
    std::array<std::uint32_t, kTags> tags_{};
};

}  // namespace marey::python
