// range_objects.h: the types and functions that mark ranges from Python, against the raw C API.
#pragma once

#include <Python.h>

namespace marey::bindings {

class RangeState;

// Each adds its part to the module; false with a Python error set on failure.
bool add_record_function(PyObject* module) noexcept;
bool add_record_function_fast(PyObject* module) noexcept;
bool add_mark_functions(PyObject* module) noexcept;  ///< begin, end, instant, counter, step_mark, thread_name
bool add_open_ranges(PyObject* module) noexcept;     ///< async_range, and what take_over() gives

/// An object that owns the range of the innermost entry of a with-object, with a method end(). Null with a
/// Python error set on failure.
PyObject* take_over(RangeState& from) noexcept;

}  // namespace marey::bindings
