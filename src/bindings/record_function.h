// record_function.h: the with-objects, the decorator and the functions that mark ranges from Python.
#pragma once

#include <Python.h>

namespace kymo::bindings {

/// Adds record_function, begin and end to the module. False with a Python error set on failure.
bool add_range_objects(PyObject* module) noexcept;

}  // namespace kymo::bindings
