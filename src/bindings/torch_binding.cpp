// torch_binding.cpp: loads and controls the observer of PyTorch operators, and returns the path of the
// library that it is linked with.
#include <dlfcn.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <marey/c.h>
#include <marey/detail/log_format.h>
#include <marey/error.h>

#include "bindings/bind.h"
#include "sources/torch/observer/observer_table.h"
#include "sources/torch/torch_source.h"

namespace nb = nanobind;

namespace marey::bindings {

namespace {

std::string library_path() {
    Dl_info info{};
    if (::dladdr(reinterpret_cast<const void*>(&marey_intern), &info) == 0 || info.dli_fname == nullptr)
        throw Error("cannot find libmarey.so");
    return info.dli_fname;
}

}  // namespace

void bind_torch(nb::module_& module) {
    torch::describe_ranges();
    nb::module_ part = module.def_submodule("torch", "The observer of PyTorch operators.");
    part.attr("NEEDS_RANGES") = static_cast<std::uint32_t>(torch::kNeedsRanges);
    part.attr("NEEDS_INPUTS") = static_cast<std::uint32_t>(torch::kNeedsInputs);
    part.attr("NEEDS_OUTPUTS") = static_cast<std::uint32_t>(torch::kNeedsOutputs);
    part.attr("NEEDS_OVERLOADS") = static_cast<std::uint32_t>(torch::kNeedsOverloads);
    part.attr("LAYOUT") = detail::kLayoutNumber;
    part.def("library_path", library_path, "Return the path of libmarey.so.");
    part.def("load", torch::load_observer, nb::arg("path"), nb::call_guard<nb::gil_scoped_release>(),
             "Load the observer; from then on, every session records PyTorch operators.");
    part.def("is_loaded", torch::is_observer_loaded);
    part.def("hold", torch::hold_needs, nb::arg("needs"), nb::call_guard<nb::gil_scoped_release>(),
             "Observe operators until release(), as if a session recorded them.");
    part.def("release", torch::release_needs, nb::arg("needs"), nb::call_guard<nb::gil_scoped_release>());
    part.def("links_forward", torch::links_forward,
             "Return whether PyTorch's profiler links operators with their backward passes.");
    part.def("records_waits", torch::records_waits,
             "Return whether PyTorch's profiler records waits for the GPU without being asked.");
    part.def("enter", torch::enter_thread, nb::arg("shapes"),
             "Make PyTorch treat this thread as profiled, and return the token for leave().");
    part.def("leave", torch::leave_thread, nb::arg("token"));
}

}  // namespace marey::bindings
