// errors.h: kymo.Error, for code against the raw C API.
#pragma once

#include <Python.h>

namespace kymo::bindings {

/// kymo.Error, a RuntimeError. Set while the module is made.
extern PyObject* error_type;

}  // namespace kymo::bindings
