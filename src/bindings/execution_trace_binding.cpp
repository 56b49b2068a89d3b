// execution_trace_binding.cpp: marey::ExecutionTrace and its environment settings.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <marey/execution_trace.h>

#include "bindings/bind.h"
#include "sources/torch/torch_source.h"

namespace nb = nanobind;

namespace marey::bindings {

void bind_execution_trace(nb::module_& module) {
    using Released = nb::call_guard<nb::gil_scoped_release>;
    nb::class_<ExecutionTrace>(module, "ExecutionTrace")
        .def(nb::init<const std::string&>(), nb::arg("path"), Released())
        .def("start", &ExecutionTrace::start, Released())
        .def("stop", &ExecutionTrace::stop, Released())
        .def("save_elements_in", &ExecutionTrace::save_elements_in, nb::arg("folder"), Released())
        .def("finish", &ExecutionTrace::finish, Released())
        .def_prop_ro("is_running", &ExecutionTrace::is_running);
    module.def("execution_trace_request", [] {
        const ExecutionTraceRequest request = torch::execution_trace_request();
        return nb::make_tuple(request.is_wanted, request.path, request.with_resources);
    });
}

}  // namespace marey::bindings
