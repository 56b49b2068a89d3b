// nanobind.h: kymo::CapturedTraceback as an argument and result of functions bound with nanobind.
#pragma once

#include <nanobind/nanobind.h>

#include <kymo/traceback.h>

namespace nanobind::detail {

/// The handle and the Python object are the same capture, whichever way it goes. An empty handle is an object
/// without frames.
template <>
struct type_caster<kymo::CapturedTraceback> {
    NB_TYPE_CASTER(kymo::CapturedTraceback, const_name("kymo.CapturedTraceback"))

    bool from_python(handle source, std::uint8_t /*flags*/, cleanup_list* /*cleanup*/) noexcept {
        if (!kymo::is_captured_traceback(source.ptr())) return false;
        value = kymo::from_python(source.ptr());
        return true;
    }
    static handle from_cpp(const kymo::CapturedTraceback& traceback, rv_policy /*policy*/,
                           cleanup_list* /*cleanup*/) noexcept {
        PyObject* kymo_package = PyImport_ImportModule("kymo");
        if (kymo_package == nullptr) return {};
        Py_DECREF(kymo_package);
        return kymo::to_python(traceback);
    }
};

}  // namespace nanobind::detail
