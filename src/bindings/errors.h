// errors.h: marey.Error, for code against the raw C API.
#pragma once

#include <Python.h>

namespace marey::bindings {

/// marey.Error, a RuntimeError. Set while the module is made.
extern PyObject* error_type;

}  // namespace marey::bindings
