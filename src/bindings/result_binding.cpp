// result_binding.cpp: what analyses found, as tables for Python, and the tables of a trace through the Arrow
// PyCapsule interface.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <marey/arrow.h>
#include <marey/budgets.h>
#include <marey/compare.h>
#include <marey/error.h>
#include <marey/export.h>
#include <marey/results.h>

#include "bindings/bind.h"
#include "bindings/trace_values.h"

namespace nb = nanobind;

namespace marey::bindings {
namespace {

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

nb::object object_of(const ResultCell& cell) {
    return std::visit(
        [](const auto& value) -> nb::object {
            using T = std::decay_t<decltype(value)>;
            if constexpr (std::is_same_v<T, std::monostate>) {
                return nb::none();
            } else if constexpr (std::is_same_v<T, std::string_view>) {
                return text_object(value);
            } else if constexpr (std::is_arithmetic_v<T>) {
                return nb::cast(value);
            } else {
                nb::list list;
                for (const auto& entry : value) list.append(object_of(ResultCell(entry)));
                return list;
            }
        },
        cell);
}

nb::dict row_of(const ResultTable& table, std::size_t row) {
    nb::dict values;
    for (std::size_t i = 0; i < table.columns.size(); ++i)
        values[text_object(table.columns[i].key)] = object_of(table.cell(row, i));
    return values;
}

/// The row of a single table, or a list of rows.
nb::object value_of(const ResultTable& table) {
    if (table.is_single) return table.rows == 0 ? nb::none() : nb::object(row_of(table, 0));
    nb::list rows;
    for (std::size_t row = 0; row < table.rows; ++row) rows.append(row_of(table, row));
    return rows;
}

nb::tuple arrow_array(const ResultTable& table, const nb::object&) {
    auto schema = std::make_unique<ArrowSchema>();
    auto array = std::make_unique<ArrowArray>();
    export_arrow(table, schema.get(), array.get());
    return nb::make_tuple(to_capsule(std::move(schema), "arrow_schema"),
                          to_capsule(std::move(array), "arrow_array"));
}

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

/// The number of a name. `what`: the argument.
template <class Number, std::size_t kCount>
Number number_of(const std::string_view (&names)[kCount], std::string_view name, const std::string& what) {
    std::string known;
    for (std::size_t i = 0; i < kCount; ++i) {
        if (names[i] == name) return static_cast<Number>(i);
        known += (i == 0 ? "" : ", ") + std::string(names[i]);
    }
    throw Error("diff: " + what + ": expected one of " + known + ", got '" + std::string(name) + "'");
}

void bind_comparison(nb::module_& module) {
    using Renames = std::vector<std::pair<std::string, std::string>>;
    nb::class_<RunComparison>(module, "RunComparison", "Compares runs that are added one by one.")
        .def(
            "__init__",
            [](RunComparison* self, const std::string& by, const std::string& metric, std::string step,
               Renames renames, bool fold_numbers, double effect, bool in_turns) {
                new (self)
                    RunComparison({.by = number_of<CompareBy>(kCompareByNames, by, "by"),
                                   .metric = number_of<CompareMetric>(kCompareMetricNames, metric, "metric"),
                                   .step_name = std::move(step),
                                   .renames = std::move(renames),
                                   .fold_numbers = fold_numbers,
                                   .in_turns = in_turns,
                                   .effect = effect});
            },
            nb::arg("by"), nb::arg("metric"), nb::arg("step"), nb::arg("renames"), nb::arg("fold_numbers"),
            nb::arg("effect"), nb::arg("in_turns"))
        .def(
            "add",
            [](RunComparison& self, const Trace& trace, bool is_new, const std::string& name) {
                self.add(trace, is_new ? CompareSide::New : CompareSide::Old, name);
            },
            nb::arg("trace"), nb::arg("is_new"), nb::arg("name"), nb::call_guard<nb::gil_scoped_release>())
        .def(
            "tables",
            [](RunComparison& self, std::optional<std::size_t> rows) {
                const Comparison comparison = self.compare();
                return (rows ? diff_result(comparison, *rows) : diff_result(comparison)).tables;
            },
            nb::arg("rows") = nb::none(), nb::call_guard<nb::gil_scoped_release>());
}

void bind_check(nb::module_& module) {
    nb::class_<BudgetCheck>(module, "BudgetCheck", "Checks runs that are added one by one.")
        .def(
            "__init__",
            [](BudgetCheck* self, const std::string& rules, const std::string& file, std::string step) {
                new (self) BudgetCheck(parse_budgets(rules, file), std::move(step));
            },
            nb::arg("rules"), nb::arg("file"), nb::arg("step"))
        .def("add", &BudgetCheck::add, nb::arg("trace"), nb::arg("name"),
             nb::call_guard<nb::gil_scoped_release>())
        .def(
            "tables",
            [](const BudgetCheck& self, const std::optional<std::string>& baseline, const std::string& file,
               bool trusts_machine) {
                std::optional<Baseline> values;
                if (baseline) values = parse_baseline(*baseline, file);
                return check_result(self.report(values ? &*values : nullptr, trusts_machine)).tables;
            },
            nb::arg("baseline").none(), nb::arg("file"), nb::arg("trust_machine"));
}

}  // namespace

void bind_results(nb::module_& module) {
    nb::class_<ResultTable>(module, "ResultTable", "A table of what an analysis found.")
        .def_ro("name", &ResultTable::name)
        .def_ro("description", &ResultTable::description)
        .def_ro("is_single", &ResultTable::is_single)
        .def("__len__", [](const ResultTable& table) { return table.rows; })
        .def(
            "columns",
            [](const ResultTable& table) {
                nb::list columns;
                for (const ResultColumn& column : table.columns)
                    columns.append(nb::make_tuple(column.key, column.description));
                return columns;
            },
            "Return a list of (key, description).")
        .def("value", &value_of, "Return a list of rows, or the only row, as dicts.")
        .def("__arrow_c_array__", &arrow_array, nb::arg("requested_schema") = nb::none());
    bind_comparison(module);
    bind_check(module);
    module.def("result_names", &result_names);
    module.def(
        "make_result",
        [](const Trace& trace, const std::string& name, std::optional<std::int32_t> device,
           std::optional<std::size_t> rows) {
            ResultOptions options{.device = device};
            if (rows) options.rows = *rows;
            return make_result(trace, name, options).tables;
        },
        nb::arg("trace"), nb::arg("name"), nb::arg("device") = nb::none(), nb::arg("rows") = nb::none(),
        nb::call_guard<nb::gil_scoped_release>());
    module.def(
        "rank_result",
        [](const std::vector<Trace>& traces, const std::string& step_name, const std::string& input_name) {
            return rank_result(rank_report(traces, {.step_name = step_name, .input_name = input_name}))
                .tables;
        },
        nb::arg("traces"), nb::arg("step_name"), nb::arg("input_name"),
        nb::call_guard<nb::gil_scoped_release>());
    module.def(
        "read_ranks",
        [](const std::vector<std::filesystem::path>& paths, const std::string& step_name,
           const std::string& input_name) {
            RankFiles found;
            std::vector<ResultTable> tables;
            {
                const nb::gil_scoped_release release;
                found = read_ranks(texts_of(paths), {.step_name = step_name, .input_name = input_name});
                tables = rank_result(found.report).tables;
            }
            nb::list left_out;
            for (const RankFileError& file : found.left_out)
                left_out.append(nb::make_tuple(text_object(file.path), text_object(file.text)));
            return nb::make_tuple(std::move(tables), left_out);
        },
        nb::arg("paths"), nb::arg("step_name"), nb::arg("input_name"));
}

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
