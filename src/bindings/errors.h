// errors.h: marey.Error for code that uses the raw C API.
#pragma once

#include <Python.h>

namespace marey::bindings {

/// marey.Error, a RuntimeError. Set while the module is created.
extern PyObject* error_type;

}  // namespace marey::bindings
