// stack_option.h: the argument `stack` of ranges: which frames they carry.
#pragma once

#include <Python.h>

#include <cstdint>

#include <marey/traceback.h>

namespace marey::bindings {

/// Bits: which frames a range carries.
using StackChoice = std::uint8_t;
inline constexpr StackChoice kNoStack = 0;
inline constexpr StackChoice kPythonStack = 1;
inline constexpr StackChoice kNativeStack = 2;

/// Of None, False, True, "python", "cpp" or "both". False with a Python error set: it is none of them.
bool parse_stack_choice(PyObject* given, const char* who, StackChoice& choice) noexcept;

/// As it was given: False, "python", "cpp" or "both". A new reference.
PyObject* stack_choice_object(StackChoice choice) noexcept;

inline TracebackOptions traceback_options(StackChoice choice) noexcept {
    return {.python = (choice & kPythonStack) != 0, .native = (choice & kNativeStack) != 0};
}

}  // namespace marey::bindings
