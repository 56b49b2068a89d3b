// pybind11.h: kymo::CapturedTraceback as an argument and result of functions bound with pybind11.
#pragma once

#include <kymo/traceback.h>
#include <pybind11/pybind11.h>

namespace pybind11::detail {

/// The handle and the Python object are the same capture, whichever way it goes. An empty handle is an object
/// without frames.
template <>
struct type_caster<kymo::CapturedTraceback> {
    PYBIND11_TYPE_CASTER(kymo::CapturedTraceback, const_name("kymo.CapturedTraceback"));

    bool load(handle source, bool /*convert*/) {
        if (!kymo::is_captured_traceback(source.ptr())) return false;
        value = kymo::from_python(source.ptr());
        return true;
    }
    static handle cast(const kymo::CapturedTraceback& traceback, return_value_policy /*policy*/,
                       handle /*parent*/) {
        PyObject* kymo_package = PyImport_ImportModule("kymo");
        if (kymo_package == nullptr) throw error_already_set();
        Py_DECREF(kymo_package);
        return kymo::to_python(traceback);
    }
};

}  // namespace pybind11::detail
