// averages_binding.cpp: averages, their tables and stacks, from a trace or from events of Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <marey/averages.h>
#include <marey/error.h>
#include <marey/export.h>
#include <marey/known_waits.h>
#include <marey/stacks.h>
#include <marey/table.h>

#include "bindings/bind.h"
#include "bindings/python_events.h"
#include "bindings/trace_values.h"

namespace nb = nanobind;

namespace marey::bindings {
namespace {

constexpr double kNsPerUs = 1000.0;

/// An integer if it is one, as in PyTorch; 0: unknown.
nb::object flops_object(const std::optional<double>& flops) {
    if (!flops) return nb::int_(0);
    const bool is_integer = std::isfinite(*flops) && *flops == std::floor(*flops);
    return is_integer ? nb::steal(PyLong_FromDouble(*flops)) : nb::float_(*flops);
}

double micros(std::int64_t ns) {
    return static_cast<double>(ns) / kNsPerUs;
}

/// Adds the fields of FunctionEventAvg that are those of the row, and Marey's own.
void add_fields(const AverageRow& row, nb::dict& fields) {
    fields["key"] = text_object(row.name);
    fields["count"] = row.count;
    fields["node_id"] = row.node;
    fields["is_async"] = row.is_async;
    fields["is_remote"] = row.is_remote;
    fields["cpu_time_total"] = micros(row.cpu_time_total_ns);
    fields["device_time_total"] = micros(row.device_time_total_ns);
    fields["self_cpu_time_total"] = micros(row.self_cpu_time_total_ns);
    fields["self_device_time_total"] = micros(row.self_device_time_total_ns);
    fields["overload_name"] = text_object(row.overload);
    nb::list stack;
    for (const std::string& entry : row.stack) stack.append(text_object(entry));
    fields["stack"] = stack;
    fields["scope"] = static_cast<int>(row.scope);
    fields["cpu_memory_usage"] = row.cpu_memory_bytes;
    fields["device_memory_usage"] = row.device_memory_bytes;
    fields["self_cpu_memory_usage"] = row.self_cpu_memory_bytes;
    fields["self_device_memory_usage"] = row.self_device_memory_bytes;
    fields["is_legacy"] = row.is_legacy;
    fields["flops"] = flops_object(row.flops);
    fields["is_user_annotation"] = row.is_user_annotation;
    fields["min"] = micros(row.min_ns);
    fields["max"] = micros(row.max_ns);
    fields["p50"] = micros(row.p50_ns);
    fields["p90"] = micros(row.p90_ns);
    fields["p99"] = micros(row.p99_ns);
    fields["threads"] = row.threads;
    fields["unfinished"] = row.unfinished;
    fields["async_count"] = row.async_count;
    fields["thread_name"] = text_object(row.thread_name);
}

nb::object share(std::int64_t part, std::int64_t whole) {
    if (whole == 0) return nb::str("NaN");
    char text[64];
    std::snprintf(text, sizeof text, "%.2f%%", micros(part) * 100.0 / micros(whole));
    return nb::str(text);
}

/// The totals to which the shares of rows refer.
struct Totals {
    explicit Totals(const Averages& averages)
        : cpu_ns(averages.recorded_ns), device_ns(device_time_ns(averages)) {}

    /// Sets the shares of a row, as text, on its object.
    void set_shares(const AverageRow& row, nb::handle object, bool on_device) const {
        object.attr("self_cpu_percent") = share(row.self_cpu_time_total_ns, cpu_ns);
        object.attr("total_cpu_percent") =
            row.is_async ? nb::object(nb::int_(0)) : share(row.cpu_time_total_ns, cpu_ns);
        if (on_device) object.attr("total_device_percent") = share(row.self_device_time_total_ns, device_ns);
    }

    std::int64_t cpu_ns;
    std::int64_t device_ns;
};

/// Makes FunctionEventAvg objects: of this class and device, with the enumeration of device types, and the
/// function that returns the event of a range.
struct AverageMaker {
    nb::handle cls, use_device, device_types, first_event;

    nb::object make(const Totals& totals, const AverageRow& row, nb::handle input_shapes) const {
        nb::object average = cls.attr("__new__")(cls);
        auto fields = nb::borrow<nb::dict>(average.attr("__dict__"));
        add_fields(row, fields);
        fields["use_device"] = use_device;
        fields["device_type"] = device_type_object(device_types, row.device_type);
        // If it is not given, that of the first event; an allocation has none.
        if (!input_shapes.is_none())
            fields["input_shapes"] = input_shapes;
        else if (row.first_range == kNoRow)
            fields["input_shapes"] = nb::list();
        fields["_first"] = nb::make_tuple(row_object(row.first_range), first_event);
        totals.set_shares(row, average, is_true(use_device));
        return average;
    }
};

/// Whether a list has one object for each row, with its values.
bool has_objects(const Averages& averages, const nb::list& list) {
    if (list.size() != averages.rows.size()) return false;
    for (std::size_t i = 0; i < list.size(); ++i) {
        const auto now = nb::borrow<nb::dict>(list[i].attr("__dict__"));
        nb::dict fields;
        add_fields(averages.rows[i], fields);
        for (const auto& [name, value] : fields) {
            if (!now.contains(name) || !now[name].equal(value)) return false;
        }
    }
    return true;
}

Averages without_calls(const Averages& averages) {
    Averages less = averages;
    std::erase_if(less.rows, [](const AverageRow& row) {
        return row.scope == Scope::PythonFunction || row.scope == Scope::CFunction;
    });
    less.recorded_ns = 0;
    for (const AverageRow& row : less.rows) less.recorded_ns += row.self_cpu_time_total_ns;
    return less;
}

template <class T>
T option(const std::string& key, nb::handle value) {
    try {
        return nb::cast<T>(value);
    } catch (const nb::cast_error&) {
        const std::string shown = nb::cast<std::string>(nb::repr(value));
        throw nb::type_error(("invalid value for " + key + ": " + shown).c_str());
    }
}

TableOptions table_options(const nb::dict& given) {
    using Width = std::optional<std::size_t>;
    TableOptions options;
    for (const auto& [name, value] : given) {
        const std::string key = nb::cast<std::string>(name);
        if (key == "sort_by") options.sort_by = option<std::string>(key, value);
        if (key == "ascending") options.ascending = option<bool>(key, value);
        if (key == "row_limit") options.row_limit = option<std::int64_t>(key, value);
        if (key == "max_src_column_width") options.max_src_column_width = option<Width>(key, value);
        if (key == "max_name_column_width") options.max_name_column_width = option<Width>(key, value);
        if (key == "max_shapes_column_width") options.max_shapes_column_width = option<Width>(key, value);
        if (key == "header") options.header = option<std::optional<std::string>>(key, value);
        if (key == "top_level_events_only") options.top_level_events_only = option<bool>(key, value);
        if (key == "time_unit") options.time_unit = option<std::string>(key, value);
        if (key == "columns") options.columns = option<std::vector<std::string>>(key, value);
        if (key == "device_name") options.device_name = option<std::string>(key, value);
    }
    return options;
}

std::string text_of(const Averages& averages, const std::string& form, const TableOptions& options) {
    const nb::gil_scoped_release unlocked;
    if (form == "csv") return averages_csv(averages, options);
    if (form == "markdown") return averages_markdown(averages, options);
    return averages_table(averages, options);
}

nb::object device_of(const Trace& trace) {
    const DeviceType device = used_device(trace);
    return device == DeviceType::None ? nb::object(nb::none()) : nb::str(device_type_name(device));
}

/// Whether a table can be sorted by this key.
bool is_table_key(const std::string& key) {
    TableOptions options;
    options.sort_by = key;
    try {
        averages_table(Averages(), options);
    } catch (const Error&) {
        return false;
    }
    return true;
}

void bind_averages_class(nb::module_& module) {
    nb::class_<Averages>(module, "Averages", "Ranges grouped and summed, or one row per range.")
        .def("__len__", [](const Averages& averages) { return averages.rows.size(); })
        .def(
            "objects",
            [](const Averages& averages, nb::handle cls, nb::handle use_device, nb::handle device_types,
               nb::handle input_shapes, nb::handle first_event) {
                const AverageMaker maker{cls, use_device, device_types, first_event};
                const Totals totals(averages);
                nb::list list;
                for (const AverageRow& row : averages.rows)
                    list.append(maker.make(totals, row, input_shapes));
                return list;
            },
            nb::arg("cls"), nb::arg("use_device").none(), nb::arg("device_types"),
            nb::arg("input_shapes").none(), nb::arg("first_event"), "Return a FunctionEventAvg for each row.")
        .def(
            "total_object",
            [](const Averages& averages, nb::handle cls, nb::handle use_device, nb::handle device_types,
               nb::handle first_event) {
                const AverageMaker maker{cls, use_device, device_types, first_event};
                return maker.make(Totals(averages), total_average(averages), nb::str(""));
            },
            nb::arg("cls"), nb::arg("use_device").none(), nb::arg("device_types"),
            nb::arg("first_event").none(), "Return the sum of all rows as a FunctionEventAvg.")
        .def("has", &has_objects, "Return whether a list has these objects, unchanged.")
        .def(
            "set_shares",
            [](const Averages& averages, const nb::list& events) {
                const Totals totals(averages);
                for (std::size_t i = 0; i < events.size(); ++i)
                    totals.set_shares(averages.rows.at(i), events[i], is_true(events[i].attr("use_device")));
            },
            "Set the percentages of the events or averages that the rows were made of.")
        .def("group",
             [](const Averages& list, bool by_input_shape, std::uint32_t stack_entries, bool by_overload,
                bool percentiles) {
                 return group_rows(list, {.by_input_shape = by_input_shape,
                                          .by_overload = by_overload,
                                          .stack_entries = stack_entries,
                                          .percentiles = percentiles});
             })
        .def("text",
             [](const Averages& averages, const std::string& form, const nb::dict& given) {
                 return text_object(text_of(averages, form, table_options(given)));
             })
        .def("without_calls", &without_calls, "Leave out the rows of Python and C functions.")
        .def("without_flops",
             [](const Averages& averages) {
                 Averages less = averages;
                 for (AverageRow& row : less.rows) row.flops.reset();
                 return less;
             })
        .def_prop_ro("self_cpu_time_total",
                     [](const Averages& averages) { return micros(averages.recorded_ns); })
        .def_prop_ro("self_device_time_total",
                     [](const Averages& averages) { return micros(device_time_ns(averages)); })
        .def_prop_ro("has_flops", [](const Averages& averages) {
            return std::any_of(averages.rows.begin(), averages.rows.end(),
                               [](const AverageRow& row) { return row.flops.has_value(); });
        });
}

}  // namespace

void bind_averages(nb::module_& module) {
    bind_averages_class(module);
    module.def(
        "known_waits",
        [] {
            nb::list names;
            for (const std::string_view name : known_waits()) names.append(text_object(name));
            return names;
        },
        "Return the functions that only wait, as module and qualified name.");
    module.def(
        "key_averages",
        [](const Trace& trace, bool by_input_shape, std::uint32_t stack_entries, bool by_overload,
           bool by_thread, bool percentiles, bool flops, bool memory) {
            Averages averages = key_averages(trace, {.by_thread = by_thread,
                                                     .by_input_shape = by_input_shape,
                                                     .by_overload = by_overload,
                                                     .stack_entries = stack_entries,
                                                     .percentiles = percentiles,
                                                     .flops = flops});
            averages.has_memory = memory;
            return averages;
        },
        nb::arg("trace"), nb::arg("by_input_shape") = false, nb::arg("stack_entries") = 0,
        nb::arg("by_overload") = false, nb::arg("by_thread") = false, nb::arg("percentiles") = false,
        nb::arg("flops") = false, nb::arg("memory") = false, nb::call_guard<nb::gil_scoped_release>());
    module.def(
        "list_ranges",
        [](const Trace& trace, bool flops, bool memory) {
            Averages averages = list_ranges(trace, {.flops = flops});
            averages.has_memory = memory;
            return averages;
        },
        nb::arg("trace"), nb::arg("flops"), nb::arg("memory"), nb::call_guard<nb::gil_scoped_release>());
    module.def(
        "averages_of_events",
        [](const nb::list& events, int device, bool has_memory) {
            Averages averages{
                .is_list = true, .device = static_cast<DeviceType>(device), .has_memory = has_memory};
            for (const nb::handle event : events) {
                averages.rows.push_back(given_row(event));
                averages.recorded_ns += averages.rows.back().self_cpu_time_total_ns;
            }
            averages.range_count = averages.rows.size();
            return averages;
        },
        nb::arg("events"), nb::arg("device"), nb::arg("has_memory"),
        "Return one row for each FunctionEvent or FunctionEventAvg.");
    module.def("table_columns", [] {
        nb::dict columns;
        for (const TableColumn& column : table_columns()) columns[column.key.c_str()] = column.description;
        return columns;
    });
    module.def("device_of", &device_of, nb::arg("trace"),
               "Return the type of the device used in a trace, or None.");
    module.def(
        "has_memory", [](const Trace& trace) { return trace.memory().size() > 0; }, nb::arg("trace"));
    module.def("is_table_key", &is_table_key);
    module.def("stack_metrics", &stack_metrics);
    module.def(
        "export_stacks",
        [](const Trace& trace, const std::string& path, const std::string& metric, bool append_name) {
            write_stacks(trace, path,
                         {.metric = metric,
                          .frames = StackFrames::Python,
                          .append_name = append_name,
                          .microseconds = true});
        },
        nb::arg("trace"), nb::arg("path"), nb::arg("metric"), nb::arg("append_name"),
        nb::call_guard<nb::gil_scoped_release>(),
        "Write stacks for flame graphs, with the value of the metric for each.");
    module.def(
        "write_chrome_json",
        [](const Trace& trace, const std::string& path) { write_chrome_json(trace, path); }, nb::arg("trace"),
        nb::arg("path"), nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace marey::bindings
