// range_objects.h: the Python types and functions written with the raw C API: those that mark ranges, and
// marey.CapturedTraceback.
#pragma once

#include <Python.h>

#include <initializer_list>

#include <marey/traceback.h>

#include "bindings/stack_option.h"

namespace marey::bindings {

class RangeState;

// Each function adds its part to the module; false with a Python error set on failure.
bool add_record_function(PyObject* module) noexcept;
bool add_record_function_fast(PyObject* module) noexcept;
bool add_parts(PyObject* module) noexcept;            ///< parts
bool add_ranged_function(PyObject* module) noexcept;  ///< the type of make_ranged_function()

/// Creates a callable that marks each call of `function` with a range of that name. Functions that suspend
/// (generators, coroutines) are wrapped by marey.context.suspending. Null with a Python error set on failure.
PyObject* make_ranged_function(PyObject* function, PyObject* name, PyObject* args,
                               StackChoice stack) noexcept;

/// Calls a function of a Python module. Null with a Python error set on failure.
PyObject* call_module(const char* module_name, const char* function_name,
                      std::initializer_list<PyObject*> arguments) noexcept;

/// Creates an object, with a method end(), that owns the range of the innermost entry of a with statement.
/// Null with a Python error set on failure.
PyObject* take_over(RangeState& from) noexcept;

/// marey.Error, a RuntimeError. Set while the module is created.
extern PyObject* error_type;

/// Adds the type; false with a Python error set on failure.
bool add_traceback(PyObject* module) noexcept;

bool is_traceback(PyObject* object) noexcept;
/// The capture of an object; empty if it has none or is of another type.
CapturedTraceback traceback_of(PyObject* object) noexcept;

}  // namespace marey::bindings
