// view_binding.cpp: marey::Viewer, the running viewer, for marey.results.view.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <marey/error.h>
#include <marey/export.h>
#include <marey/view.h>

#include "bindings/bind.h"

namespace nb = nanobind;

namespace marey::bindings {
namespace {

/// A viewer that can be closed. Used under the GIL, except while it is opened and closed.
struct ViewHandle {
    std::unique_ptr<Viewer> view;
    std::string url;
};

ViewHandle* open_trace_view(const Trace& trace, const std::string& name, unsigned port,
                            const std::vector<std::string>& source_dirs) {
    if (port > 65535) throw Error("invalid port " + std::to_string(port) + ": expected 0 to 65535");
    std::vector<ViewSource> sources;
    sources.push_back({name, [trace] { return trace; }});
    ViewOptions options{.port = static_cast<std::uint16_t>(port), .source_dirs = source_dirs};
    auto handle = std::make_unique<ViewHandle>();
    const nb::gil_scoped_release no_gil;
    handle->view = open_view(std::move(sources), options);
    handle->url = handle->view->url();
    return handle.release();
}

}  // namespace

void bind_view(nb::module_& module) {
    nb::class_<ViewHandle>(module, "OpenView")
        .def_ro("url", &ViewHandle::url)
        .def("close", [](ViewHandle& handle) {
            std::unique_ptr<Viewer> closed = std::move(handle.view);
            const nb::gil_scoped_release no_gil;  // waits for the server's threads
            closed.reset();
        });
    module.def(
        "html_report",
        [](const Trace& trace, const std::string& title) {
            const nb::gil_scoped_release no_gil;
            return html_report(trace, title);
        },
        nb::arg("trace"), nb::arg("title"));
    module.def("open_view", open_trace_view, nb::arg("trace"), nb::arg("name"), nb::arg("port"),
               nb::arg("source_dirs"), nb::rv_policy::take_ownership);
}

}  // namespace marey::bindings
