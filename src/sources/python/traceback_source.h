// traceback_source.h: provides Python stacks to libmarey.
#pragma once

#include <Python.h>

#include <marey/traceback.h>

namespace marey::python {

/// Functions to create and recognize the object type of captures, from the bindings.
struct TracebackObjects {
    PyObject* (*wrap)(const CapturedTraceback& traceback) noexcept;
    bool (*is_one)(PyObject* object) noexcept;
    CapturedTraceback (*unwrap)(PyObject* object) noexcept;
};

/// Called once, with the GIL, when the extension is loaded.
void offer_python_stacks(const TracebackObjects& objects) noexcept;

}  // namespace marey::python
