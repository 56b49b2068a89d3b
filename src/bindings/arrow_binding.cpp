// arrow_binding.cpp: exports the tables of a trace through the Arrow PyCapsule interface.
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <sstream>

#include <marey/arrow.h>
#include <marey/export.h>

#include "bindings/arrow_capsule.h"
#include "bindings/bind.h"

namespace nb = nanobind;

namespace marey::bindings {
namespace {

nb::object stream_of(const Trace& trace, const std::string& table, std::vector<std::string> columns,
                     std::size_t batch_rows) {
    auto stream = std::make_unique<ArrowArrayStream>();
    export_arrow_stream(trace, table, std::move(columns), batch_rows, stream.get());
    return to_capsule(std::move(stream), "arrow_array_stream");
}

nb::object schema_of(const Trace& trace, const std::string& table) {
    auto schema = std::make_unique<ArrowSchema>();
    export_arrow_schema(trace, table, {}, schema.get());
    return to_capsule(std::move(schema), "arrow_schema");
}

}  // namespace

void bind_arrow(nb::module_& module) {
    module.def("table_names",
               [] { return std::vector<std::string_view>(table_names().begin(), table_names().end()); });
    module.def("arrow_stream", stream_of, nb::arg("trace"), nb::arg("table"),
               nb::arg("columns") = std::vector<std::string>(), nb::arg("batch_rows") = 0);
    module.def("arrow_schema", schema_of, nb::arg("trace"), nb::arg("table"));
    module.def(
        "table_csv",
        [](const Trace& trace, const std::string& table) {
            std::ostringstream text;
            write_csv(trace, text, table);
            return std::move(text).str();
        },
        nb::arg("trace"), nb::arg("table"));
}

}  // namespace marey::bindings
