// torch_binding.cpp: marey.torch's way to the observer of PyTorch's operators, and where the library lies
// that it is compiled against.
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
        throw Error("libmarey.so cannot be found");
    return info.dli_fname;
}

}  // namespace

void bind_torch(nb::module_& module) {
    nb::module_ part = module.def_submodule("torch", "The observer of PyTorch's operators.");
    part.attr("NEEDS_RANGES") = static_cast<std::uint32_t>(torch::kNeedsRanges);
    part.attr("NEEDS_INPUTS") = static_cast<std::uint32_t>(torch::kNeedsInputs);
    part.attr("NEEDS_OUTPUTS") = static_cast<std::uint32_t>(torch::kNeedsOutputs);
    part.attr("NEEDS_OVERLOADS") = static_cast<std::uint32_t>(torch::kNeedsOverloads);
    part.attr("LAYOUT") = detail::kLayoutNumber;
    part.def("library_path", library_path, "The path of libmarey.so.");
    part.def("load", torch::load_observer, nb::arg("path"), nb::call_guard<nb::gil_scoped_release>(),
             "Loads the observer; every session has PyTorch's operators from then on.");
    part.def("is_loaded", torch::is_observer_loaded);
    part.def("hold", torch::hold_needs, nb::arg("needs"), nb::call_guard<nb::gil_scoped_release>(),
             "Has operators observed as if a session asked for that, until release().");
    part.def("release", torch::release_needs, nb::arg("needs"), nb::call_guard<nb::gil_scoped_release>());
    part.def("enter", torch::enter_thread, nb::arg("shapes"),
             "Puts this thread under Marey in PyTorch's eyes; gives what leave() takes.");
    part.def("leave", torch::leave_thread, nb::arg("token"));
}

}  // namespace marey::bindings
