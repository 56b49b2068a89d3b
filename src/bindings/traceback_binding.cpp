// traceback_binding.cpp: symbolizes captured tracebacks and addresses.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include <marey/traceback.h>

#include "bindings/bind.h"
#include "bindings/range_objects.h"

namespace nb = nanobind;

namespace marey::bindings {
namespace {

nb::object text_of(const std::string& text) {
    return nb::steal(
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape"));
}

nb::dict dict_of(const TracebackFrame& frame) {
    nb::dict dict;
    dict["name"] = text_of(frame.name);
    dict["filename"] = text_of(frame.filename);
    dict["line"] = frame.line;
    dict["python"] = frame.python;
    dict["inlined"] = frame.inlined;
    return dict;
}

/// Returns one list of dicts for each; equal frames share one dict.
nb::list symbolize_tracebacks(const nb::iterable& objects) {
    std::vector<CapturedTraceback> tracebacks;
    for (const nb::handle object : objects) {
        if (!is_traceback(object.ptr()))
            throw nb::type_error(
                ("expected a CapturedTraceback, got " + std::string(Py_TYPE(object.ptr())->tp_name)).c_str());
        tracebacks.push_back(traceback_of(object.ptr()));
    }
    SymbolizedTracebacks named;
    {
        const nb::gil_scoped_release released;
        named = symbolize(tracebacks);
    }
    std::vector<nb::dict> dicts;
    dicts.reserve(named.all_frames.size());
    for (const TracebackFrame& frame : named.all_frames) dicts.push_back(dict_of(frame));
    nb::list lists;
    for (const auto& indices : named.tracebacks) {
        nb::list list;
        for (const std::uint32_t index : indices) list.append(dicts[index]);
        lists.append(list);
    }
    return lists;
}

}  // namespace

void bind_traceback(nb::module_& module) {
    module.def("symbolize_tracebacks", symbolize_tracebacks);
    module.def("has_native_lines", &has_native_lines);
}

}  // namespace marey::bindings
