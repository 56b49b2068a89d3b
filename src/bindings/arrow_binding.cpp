// arrow_binding.cpp: exports the tables of a trace through the Arrow PyCapsule interface.
#include <cstring>
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

#include "bindings/bind.h"

namespace nb = nanobind;

// The ABI defined by https://arrow.apache.org/docs/format/CStreamInterface.html.
extern "C" {
struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
    int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
    const char* (*get_last_error)(struct ArrowArrayStream*);
    void (*release)(struct ArrowArrayStream*);
    void* private_data;
};
}

namespace marey::bindings {
namespace {

/// One table of a trace, or some of its columns, as a stream of one batch.
struct TableStream {
    Trace trace;
    std::string table;
    std::vector<std::string> columns{};  ///< empty: all
    bool is_done = false;
    std::string error{};

    static TableStream& of(ArrowArrayStream* stream) noexcept {
        return *static_cast<TableStream*>(stream->private_data);
    }
    /// Returns 0, or an errno value with the reason in `error`.
    template <class Export>
    int run(Export&& exporting) noexcept {
        try {
            exporting();
            return 0;
        } catch (const std::exception& failure) {
            error = failure.what();
            return EIO;
        }
    }
    static int get_schema(ArrowArrayStream* stream, ArrowSchema* out) noexcept {
        TableStream& self = of(stream);
        return self.run([&] { export_arrow_schema(self.trace, self.table, self.columns, out); });
    }
    static int get_next(ArrowArrayStream* stream, ArrowArray* out) noexcept {
        TableStream& self = of(stream);
        std::memset(out, 0, sizeof *out);
        if (self.is_done) return 0;
        self.is_done = true;
        ArrowSchema unused;
        const int status =
            self.run([&] { export_arrow(self.trace, self.table, self.columns, &unused, out); });
        if (status == 0) unused.release(&unused);
        return status;
    }
    static const char* get_last_error(ArrowArrayStream* stream) noexcept { return of(stream).error.c_str(); }
    static void release(ArrowArrayStream* stream) noexcept {
        delete static_cast<TableStream*>(stream->private_data);
        stream->release = nullptr;
    }
};

template <class Struct>
void free_capsule(PyObject* capsule) {
    auto* const content = static_cast<Struct*>(PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)));
    if (content->release != nullptr) content->release(content);
    delete content;
}

/// The capsule owns `content`. Throws if there is not enough memory.
template <class Struct>
nb::object to_capsule(std::unique_ptr<Struct> content, const char* name) {
    PyObject* const capsule = PyCapsule_New(content.get(), name, free_capsule<Struct>);
    if (capsule == nullptr) throw nb::python_error();
    (void)content.release();  // the capsule owns it now
    return nb::steal(capsule);
}

nb::object stream_of(const Trace& trace, const std::string& table, std::vector<std::string> columns) {
    auto stream = std::make_unique<ArrowArrayStream>();
    stream->get_schema = TableStream::get_schema;
    stream->get_next = TableStream::get_next;
    stream->get_last_error = TableStream::get_last_error;
    stream->release = TableStream::release;
    stream->private_data = new TableStream{trace, table, std::move(columns)};
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
               nb::arg("columns") = std::vector<std::string>());
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
