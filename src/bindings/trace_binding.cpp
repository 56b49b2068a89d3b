// trace_binding.cpp: kymo::Trace as kymo.Trace.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <kymo/export.h>
#include <kymo/import.h>
#include <kymo/trace.h>

#include "bindings/bind.h"

namespace nb = nanobind;

namespace kymo::bindings {

void bind_trace(nb::module_& module) {
    nb::class_<Trace>(module, "Trace", "A finished recording. Immutable.")
        .def("__len__", [](const Trace& trace) { return trace.ranges().size(); })
        .def("range_name", [](const Trace& trace, Row row) { return trace.range_name(row); })
        .def("save", &Trace::save, nb::arg("path"), nb::call_guard<nb::gil_scoped_release>());
    module.def(
        "load", [](const std::string& path, const std::string& format) { return open_trace(path, format); },
        nb::arg("path"), nb::arg("format") = "", nb::call_guard<nb::gil_scoped_release>(),
        "Reads a capture or a trace of another tool.");
}

}  // namespace kymo::bindings
