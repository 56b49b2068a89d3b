// emitters_binding.cpp: emitters, explicit marks and ranges for NVTX and ITT, and execution traces.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <marey/emit.h>
#include <marey/execution_trace.h>
#include <marey/nvtx.h>

#include "bindings/bind.h"
#include "sources/torch/torch_source.h"

namespace nb = nanobind;

namespace marey::bindings {
namespace {

template <class Emitter>
void bind_emitter(nb::module_& module, const char* name) {
    nb::class_<Emitter>(module, name)
        .def(
            "__init__",
            [](Emitter* self, bool record_shapes) {
                const nb::gil_scoped_release released;
                new (self) Emitter(EmitOptions{.record_shapes = record_shapes});
            },
            nb::arg("record_shapes") = false)
        .def("stop", &Emitter::stop, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace

void bind_emitters(nb::module_& module) {
    bind_emitter<NvtxEmitter>(module, "NvtxEmitter");
    bind_emitter<IttEmitter>(module, "IttEmitter");

    nb::module_ by_hand = module.def_submodule("nvtx");
    by_hand.def("is_available", &nvtx::is_available);
    by_hand.def("is_listening", &nvtx::is_listening);
    by_hand.def("mark", [](const std::string& text) { nvtx::mark(text); });
    by_hand.def("range_push", [](const std::string& text) { return nvtx::range_push(text); });
    by_hand.def("range_pop", &nvtx::range_pop);
    by_hand.def("range_start", [](const std::string& text) { return nvtx::range_start(text); });
    by_hand.def("range_end", &nvtx::range_end);

    nb::module_ itt_by_hand = module.def_submodule("itt");
    itt_by_hand.def("is_available", &itt::is_available);
    itt_by_hand.def("mark", [](const std::string& text) { itt::mark(text); });
    itt_by_hand.def("range_push", [](const std::string& text) { return itt::range_push(text); });
    itt_by_hand.def("range_pop", &itt::range_pop);
    itt_by_hand.def("range_start", [](const std::string& text) { return itt::range_start(text); });
    itt_by_hand.def("range_end", &itt::range_end);
}

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
