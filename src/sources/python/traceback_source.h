// traceback_source.h: gives libkymo the stacks of Python.
#pragma once

#include <Python.h>

#include <kymo/traceback.h>

namespace kymo::python {

/// The object type of captures; what the bindings make and tell apart.
struct TracebackObjects {
    PyObject* (*wrap)(const CapturedTraceback& traceback) noexcept;
    bool (*is_one)(PyObject* object) noexcept;
    CapturedTraceback (*unwrap)(PyObject* object) noexcept;
};

/// Once, with the GIL, when the extension is loaded.
void offer_python_stacks(const TracebackObjects& objects) noexcept;

}  // namespace kymo::python
