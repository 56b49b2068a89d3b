// stack_option.h: the `stack` argument of ranges: the frames to record.
#pragma once

#include <Python.h>

#include <cstdint>

#include <marey/traceback.h>

namespace marey::bindings {

/// Bits for the frames that a range records.
using StackChoice = std::uint8_t;
inline constexpr StackChoice kNoStack = 0;
inline constexpr StackChoice kPythonStack = 1;
inline constexpr StackChoice kNativeStack = 2;

/// Parses None, False, True, "python", "cpp" or "both". Returns false with a Python error set for anything
/// else.
bool parse_stack_choice(PyObject* given, const char* who, StackChoice& choice) noexcept;

/// The option as a Python object: False, "python", "cpp" or "both". A new reference.
PyObject* stack_choice_object(StackChoice choice) noexcept;

inline TracebackOptions traceback_options(StackChoice choice) noexcept {
    return {.python = (choice & kPythonStack) != 0, .native = (choice & kNativeStack) != 0};
}

}  // namespace marey::bindings
