// module.cpp: the extension module kymo._kymo.
#include <nanobind/nanobind.h>

#include "bindings/bind.h"
#include "bindings/record_function.h"

NB_MODULE(_kymo, module) {
    namespace nb = nanobind;
    if (!kymo::bindings::add_range_objects(module.ptr())) throw nb::python_error();
    kymo::bindings::bind_errors(module);
    kymo::bindings::bind_trace(module);
    kymo::bindings::bind_session(module);
}
