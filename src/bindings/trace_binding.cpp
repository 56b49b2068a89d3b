// trace_binding.cpp: marey::Trace as marey.Trace. Its public methods are added in marey.results.trace.
#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <filesystem>

#include <marey/error.h>
#include <marey/export.h>
#include <marey/file_format.h>
#include <marey/import.h>
#include <marey/merge.h>
#include <marey/range_filter.h>
#include <marey/selection.h>
#include <marey/symbolize.h>
#include <marey/trace.h>

#include "bindings/bind.h"
#include "bindings/trace_values.h"

namespace nb = nanobind;

namespace marey::bindings {
namespace {

nb::dict metadata_of(const Trace& trace) {
    nb::dict facts;
    for (const MetadataInfo& fact : trace.metadata()) facts[text_object(fact.key)] = text_object(fact.json);
    return facts;
}

nb::list problems_of(const Trace& trace) {
    nb::list problems;
    for (const ProblemInfo& problem : trace.problems())
        problems.append(nb::make_tuple(text_object(problem.code), text_object(problem.text), problem.count));
    return problems;
}

nb::list marked_ranges(const Trace& trace) {
    const RangeColumns ranges = trace.ranges();
    nb::list rows;
    for (Row row = 0; row < ranges.size(); ++row) {
        const SiteInfo& site = trace.sites()[ranges.site[row]];
        if (site.scope != Scope::User) continue;
        rows.append(nb::make_tuple(text_object(trace.string(site.name)), trace.track_of(row),
                                   ranges.start_ns[row], ranges.duration_ns[row]));
    }
    return rows;
}

// File names are paths: as texts, those that are not UTF-8 could not be passed.
using std::filesystem::path;

Trace load(const path& file, const std::string& format, std::uint64_t session) {
    if (session == 0) return open_trace(file.string(), format);
    if (!format.empty()) throw Error("session applies only to Marey captures: do not pass format with it");
    return Trace::load(file.string(), session);
}

nb::str target_of(const path& file) {
    return nb::steal<nb::str>(PyUnicode_DecodeFSDefault(output_target(file.string()).c_str()));
}

}  // namespace

void bind_trace(nb::module_& module) {
    const auto no_gil = nb::call_guard<nb::gil_scoped_release>();
    nb::class_<Trace>(module, "Trace", "A finished recording. Immutable.")
        .def(nb::init<>())
        .def(
            "__len__", [](const Trace& trace) { return trace.ranges().size(); },
            "Return the number of ranges.")
        .def_prop_ro(
            "name", [](const Trace& trace) { return trace.window().session_name; },
            "The name of the session.")
        .def_prop_ro(
            "start_ns", [](const Trace& trace) { return trace.window().start_ns; },
            "The start of the recording in nanoseconds on CLOCK_MONOTONIC_RAW.")
        .def_prop_ro(
            "end_ns", [](const Trace& trace) { return trace.window().end_ns; },
            "The end of the recording in nanoseconds on CLOCK_MONOTONIC_RAW.")
        .def_prop_ro("_realtime_offset_ns",
                     [](const Trace& trace) {
                         return trace.processes().empty() ? 0 : trace.processes()[0].realtime_offset_ns;
                     })
        .def_prop_ro("_first_id", [](const Trace& trace) { return trace.window().first_id; })
        .def_prop_ro("_metadata", metadata_of)
        .def_prop_ro("_problems", problems_of)
        .def("_with_metadata", &Trace::with_metadata, nb::arg("key"), nb::arg("json"))
        .def(
            "_filtered",
            [](const Trace& trace, const std::vector<std::string>& exclude, bool fold_imports,
               bool exclude_running, const std::vector<std::string>& hide) {
                return filter_ranges(trace, {.exclude = exclude,
                                             .fold_imports = fold_imports,
                                             .exclude_running = exclude_running,
                                             .hide = hide});
            },
            nb::arg("exclude"), nb::arg("fold_imports"), nb::arg("exclude_running"),
            nb::arg("hide") = std::vector<std::string>(), no_gil)
        .def(
            "_selected",
            [](const Trace& trace, std::int64_t begin_ns, std::int64_t end_ns,
               const std::vector<Row>& tracks) {
                return select_ranges(trace, {begin_ns, end_ns, tracks});
            },
            nb::arg("begin_ns"), nb::arg("end_ns"), nb::arg("tracks"), no_gil)
        .def(
            "_save", [](const Trace& trace, const path& file) { trace.save(file.string()); }, nb::arg("path"),
            no_gil)
        .def(
            "_export",
            [](const Trace& trace, const path& file, const std::string& format) {
                export_trace(trace, file.string(), format);
            },
            nb::arg("path"), nb::arg("format"), no_gil)
        .def(
            "_export_memory_timeline",
            [](const Trace& trace, const path& file, const std::string& device) {
                write_memory_timeline(trace, file.string(), parse_device(device));
            },
            nb::arg("path"), nb::arg("device"), no_gil)
        .def(
            "_symbolized",
            [](const Trace& trace, const std::vector<path>& debug_dirs) {
                return symbolize_trace(trace, texts_of(debug_dirs)).trace;
            },
            nb::arg("debug_dirs"), no_gil)
        .def(
            "flame_graph",
            [](const Trace& trace, const std::string& title, const std::string& count, double width) {
                return flame_graph_svg(trace, {title, count, width});
            },
            nb::arg("title") = "", nb::arg("count") = "", nb::arg("width") = 1600.0, no_gil,
            "Return a flame graph as SVG text: names merged by their call paths.")
        .def("timeline", &timeline_svg, no_gil, "Return every track against time as SVG text.")
        .def(
            "_export_stacks",
            [](const Trace& trace, const path& file, const std::string& metric) {
                write_stacks(trace, file.string(),
                             {.metric = metric, .frames = StackFrames::Python, .microseconds = true});
            },
            nb::arg("path"), nb::arg("metric"), no_gil);
    module.def("load", load, nb::arg("path"), nb::arg("format") = "", nb::arg("session") = 0, no_gil);
    module.def(
        "join_traces", [](const std::vector<Trace>& traces) { return join_traces(traces); },
        nb::arg("traces"), no_gil, "Join traces that follow one another into one trace.");
    module.def(
        "merge_traces", [](std::vector<Trace> traces) { return merge_traces(std::move(traces)); },
        nb::arg("traces"), no_gil, "Merge traces of several processes into one trace; they may overlap.");
    module.def(
        "load_merged",
        [](const std::vector<path>& paths, bool any_tree) {
            return load_merged(texts_of(paths), {.any_tree = any_tree}).trace;
        },
        nb::arg("paths"), nb::arg("any_tree") = false, no_gil);
    module.def(
        "export_suffixes",
        [] {
            std::vector<std::string_view> suffixes;
            for (const FileFormat& format : file_formats().subspan(1))
                suffixes.insert(suffixes.end(), format.suffixes.begin(), format.suffixes.end());
            return suffixes;
        },
        "Return how names of files in other tools' formats end.");
    module.def("output_target", target_of, nb::arg("path"),
               "Return the file that an output replaces or creates; empty if it is written in place.");
    module.def("marked_ranges", marked_ranges, nb::arg("trace"),
               "Return (name, track, start_ns, duration_ns) of each range that the program marked.");
}

}  // namespace marey::bindings
