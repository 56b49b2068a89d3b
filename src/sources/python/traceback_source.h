// traceback_source.h: gives libmarey the stacks of Python.
#pragma once

#include <Python.h>

#include <marey/traceback.h>

namespace marey::python {

/// The object type of captures; what the bindings make and tell apart.
struct TracebackObjects {
    PyObject* (*wrap)(const CapturedTraceback& traceback) noexcept;
    bool (*is_one)(PyObject* object) noexcept;
    CapturedTraceback (*unwrap)(PyObject* object) noexcept;
};

/// Once, with the GIL, when the extension is loaded.
void offer_python_stacks(const TracebackObjects& objects) noexcept;

}  // namespace marey::python
