// ranged_function.h: a function that marks each of its calls as a range.
#pragma once

#include <Python.h>

#include "bindings/stack_option.h"

namespace marey::bindings {

/// Creates a callable that marks each call of `function` with a range of that name. Functions that suspend
/// (generators, coroutines) are wrapped by marey.context.suspending. Null with a Python error set on failure.
PyObject* make_ranged_function(PyObject* function, PyObject* name, PyObject* args,
                               StackChoice stack) noexcept;
/// Prepares the type; called once.
bool add_ranged_function(PyObject* module) noexcept;

}  // namespace marey::bindings
