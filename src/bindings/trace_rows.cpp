// trace_rows.cpp: the ranges of a trace as plain Python values, row by row.
#include <nanobind/nanobind.h>

#include <marey/trace.h>

#include "bindings/bind.h"

namespace nb = nanobind;

namespace marey::bindings {
namespace {

nb::object text(const Trace& trace, StringId id) {
    const std::string_view view = trace.string(id);
    return nb::str(view.data(), view.size());
}

nb::object array(const Trace& trace, const ArrayInfo& info) {
    const auto extents = trace.array_extents();
    nb::list sizes, strides;
    for (std::uint32_t i = 0; i < info.dimensions; ++i) {
        sizes.append(extents[info.first_extent + i]);
        if (info.has_strides) strides.append(extents[info.first_extent + info.dimensions + i]);
    }
    nb::dict made;
    made["dtype"] = static_cast<int>(info.dtype);
    made["sizes"] = sizes;
    made["strides"] = info.has_strides ? nb::object(strides) : nb::none();
    made["device"] = nb::make_tuple(static_cast<int>(info.device.type), info.device.index);
    return made;
}

nb::object value(const Trace& trace, const Argument& argument) {
    switch (argument.kind) {
        case ValueKind::None:
            break;
        case ValueKind::Bool:
            return nb::bool_(argument.boolean);
        case ValueKind::Int:
            return nb::int_(argument.integer);
        case ValueKind::Double:
            return nb::float_(argument.real);
        case ValueKind::String:
            return text(trace, argument.string);
        case ValueKind::List: {
            nb::list items;
            for (std::uint32_t i = 0; i < argument.list.count; ++i)
                items.append(value(trace, trace.list_items()[argument.list.first + i]));
            return items;
        }
        case ValueKind::Array:
            return array(trace, trace.arrays()[argument.array]);
    }
    return nb::none();
}

nb::list range_rows(const Trace& trace) {
    const RangeColumns ranges = trace.ranges();
    nb::list rows;
    for (Row row = 0; row < ranges.size(); ++row) {
        const TrackInfo& track = trace.tracks()[trace.track_of(row)];
        nb::list inputs;
        nb::dict keywords;
        for (const Argument& argument : trace.range_arguments(row)) {
            if (argument.role == ArgumentRole::Keyword) {
                keywords[text(trace, argument.key)] = value(trace, argument);
            } else if (argument.role == ArgumentRole::Input) {
                inputs.append(value(trace, argument));
            }
        }
        const SiteInfo& site = trace.sites()[ranges.site[row]];
        const Row parent = ranges.parent[row];
        nb::dict made;
        made["name"] = text(trace, site.name);
        made["scope"] = static_cast<int>(site.scope);
        made["start_ns"] = ranges.start_ns[row];
        made["duration_ns"] = ranges.duration_ns[row];
        made["parent"] = parent == kNoRow ? nb::none() : nb::object(nb::int_(parent));
        made["depth"] = ranges.depth[row];
        made["flags"] = ranges.flags[row] & ~(kPart | kFurtherPart);  // "call" and "part" say it
        made["thread"] = trace.threads()[track.thread].id;
        made["os_tid"] = trace.threads()[track.thread].os_tid;
        const RangeDetail* const detail = trace.range_detail(row);
        made["call"] = detail != nullptr ? detail->call : 0;
        made["part"] = detail != nullptr ? detail->part : 0;
        made["track"] = text(trace, track.name);
        made["inputs"] = inputs;
        made["keywords"] = keywords;
        rows.append(made);
    }
    return rows;
}

nb::list marked_ranges(const Trace& trace) {
    const RangeColumns ranges = trace.ranges();
    nb::list rows;
    for (Row row = 0; row < ranges.size(); ++row) {
        const SiteInfo& site = trace.sites()[ranges.site[row]];
        if (site.scope != Scope::User) continue;
        rows.append(nb::make_tuple(text(trace, site.name), trace.track_of(row), ranges.start_ns[row],
                                   ranges.duration_ns[row]));
    }
    return rows;
}

}  // namespace

void bind_trace_rows(nb::module_& module) {
    module.def("range_rows", range_rows, nb::arg("trace"),
               "Return every range of a trace as a dict, in row order.");
    module.def("marked_ranges", marked_ranges, nb::arg("trace"),
               "Return (name, track, start_ns, duration_ns) of each range that the program marked.");
}

}  // namespace marey::bindings
