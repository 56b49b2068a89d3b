// pybind11.h: marey::CapturedTraceback as an argument and result of functions bound with pybind11.
#pragma once

#include <marey/traceback.h>
#include <pybind11/pybind11.h>

namespace pybind11::detail {

/// Converts between a handle and a Python object that share the same capture. An empty handle becomes an
/// object without frames.
template <>
struct type_caster<marey::CapturedTraceback> {
    PYBIND11_TYPE_CASTER(marey::CapturedTraceback, const_name("marey.CapturedTraceback"));

    bool load(handle source, bool /*convert*/) {
        if (!marey::is_captured_traceback(source.ptr())) return false;
        value = marey::from_python(source.ptr());
        return true;
    }
    static handle cast(const marey::CapturedTraceback& traceback, return_value_policy /*policy*/,
                       handle /*parent*/) {
        PyObject* marey_package = PyImport_ImportModule("marey");
        if (marey_package == nullptr) throw error_already_set();
        Py_DECREF(marey_package);
        return marey::to_python(traceback);
    }
};

}  // namespace pybind11::detail
