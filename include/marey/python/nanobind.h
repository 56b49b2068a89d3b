// nanobind.h: marey::CapturedTraceback as an argument and result of functions bound with nanobind.
#pragma once

#include <nanobind/nanobind.h>

#include <marey/traceback.h>

namespace nanobind::detail {

/// Converts between a handle and a Python object that share the same capture. An empty handle becomes an
/// object without frames.
template <>
struct type_caster<marey::CapturedTraceback> {
    NB_TYPE_CASTER(marey::CapturedTraceback, const_name("marey.CapturedTraceback"))

    bool from_python(handle source, std::uint8_t /*flags*/, cleanup_list* /*cleanup*/) noexcept {
        if (!marey::is_captured_traceback(source.ptr())) return false;
        value = marey::from_python(source.ptr());
        return true;
    }
    static handle from_cpp(const marey::CapturedTraceback& traceback, rv_policy /*policy*/,
                           cleanup_list* /*cleanup*/) noexcept {
        PyObject* marey_package = PyImport_ImportModule("marey");
        if (marey_package == nullptr) return {};
        Py_DECREF(marey_package);
        return marey::to_python(traceback);
    }
};

}  // namespace nanobind::detail
