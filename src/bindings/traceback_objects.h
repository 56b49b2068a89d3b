// traceback_objects.h: access to marey.CapturedTraceback for other bindings.
#pragma once

#include <Python.h>

#include <marey/traceback.h>

namespace marey::bindings {

/// Adds the type; false with a Python error set on failure.
bool add_traceback(PyObject* module) noexcept;

bool is_traceback(PyObject* object) noexcept;
/// The capture of an object; empty if it has none or is of another type.
CapturedTraceback traceback_of(PyObject* object) noexcept;

}  // namespace marey::bindings
