// events_binding.cpp: marey::EventList for lazy Python events, and traces from lists of events made by hand.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <vector>

#include <marey/assemble.h>

#include "bindings/bind.h"
#include "bindings/events_rows.h"
#include "bindings/python_events.h"
#include "bindings/trace_values.h"

namespace nb = nanobind;

namespace marey::bindings {
namespace {

/// Microseconds; 0 for device work.
double cpu_total_us(const EventList& events, std::size_t event) {
    const Row row = events.range(event);
    if (row == kNoRow) return 0;
    const Trace& trace = events.trace();
    if (trace.tracks()[trace.track_of(row)].device.type != DeviceType::Cpu) return 0;
    return static_cast<double>(trace.clipped_duration_ns(row)) / 1000.0;
}

// ---- events made by hand

AssembledTrace assembled(const nb::list& events, int device) {
    const std::vector<DescribedEvent> all = described_events(events);
    const nb::gil_scoped_release unlocked;
    return assemble_trace(all, static_cast<DeviceType>(device));
}

/// The index of the enclosing event for each event, or None.
nb::list nesting(const nb::list& events) {
    const AssembledTrace made = assembled(events, static_cast<int>(DeviceType::Cuda));
    std::vector<std::uint32_t> event_of(made.trace.ranges().size(), kNoRow);
    for (std::uint32_t i = 0; i < made.row_of.size(); ++i) event_of[made.row_of[i]] = i;
    nb::list parents;
    for (const Row row : made.row_of) {
        const Row parent = made.trace.ranges().parent[row];
        parents.append(row_object(parent == kNoRow ? kNoRow : event_of[parent]));
    }
    return parents;
}

}  // namespace

void bind_events(nb::module_& module) {
    const auto of = [](auto method) {
        return [method](const EventRows& rows, std::size_t event) {
            return (rows.events().*method)(rows.checked(event));
        };
    };
    if (!add_event_row(module.ptr())) throw nb::python_error();
    nb::class_<EventRows>(module, "EventRows", "The events of a trace, in order of time.")
        .def(nb::init<const Trace&, nb::object, nb::object, nb::object, nb::object, bool>(), nb::arg("trace"),
             nb::arg("event_type"), nb::arg("interval_type"), nb::arg("device_type"),
             nb::arg("use_device").none(), nb::arg("with_flops"))
        .def("__len__", [](const EventRows& rows) { return rows.events().size(); })
        .def("event", [](nb::handle self,
                         std::size_t event) { return nb::cast<EventRows&>(self).object(self, event); })
        .def("events", [](nb::handle self) { return nb::cast<EventRows&>(self).objects(self); })
        .def("has", &EventRows::has)
        .def_rw("is_changed", &EventRows::is_changed)
        .def_prop_ro("use_device", &EventRows::use_device)
        .def_prop_ro("with_flops", &EventRows::with_flops)
        .def_prop_ro("first_id",
                     [](const EventRows& rows) { return rows.events().trace().window().first_id; })
        .def("time_range", &EventRows::time_range)
        .def("cpu_total_us",
             [](const EventRows& rows, std::size_t event) {
                 return cpu_total_us(rows.events(), rows.checked(event));
             })
        .def("detail", &EventRows::detail)
        .def("inputs", &EventRows::inputs)
        .def("ids", &EventRows::ids)
        .def("module", &EventRows::module)
        .def("kernels", &EventRows::kernels)
        .def("stack",
             [](const EventRows& rows, std::size_t event) {
                 nb::list list;
                 for (const std::string_view entry : rows.events().stack(rows.checked(event)))
                     list.append(text_object(entry));
                 return list;
             })
        .def("category",
             [](const EventRows& rows, std::size_t event) {
                 return text_object(rows.events().category(rows.checked(event)));
             })
        .def("parent",
             [](const EventRows& rows, std::size_t event) {
                 return row_object(rows.events().parent(rows.checked(event)));
             })
        .def("children",
             [](const EventRows& rows, std::size_t event) {
                 nb::list list;
                 for (const std::uint32_t child : rows.events().children(rows.checked(event)))
                     list.append(child);
                 return list;
             })
        .def("event_of_range",
             [](const EventRows& rows, Row range) { return row_object(rows.events().event_of(range)); })
        .def("self_ns", of(&EventList::self_ns))
        .def("is_timed", of(&EventList::is_timed))
        .def("device_total_ns", of(&EventList::device_total_ns))
        .def("flops", of(&EventList::flops))
        .def("bytes", [](const EventRows& rows, std::size_t event) {
            const EventBytes bytes = rows.events().bytes(rows.checked(event));
            return nb::make_tuple(bytes.cpu, bytes.device, bytes.self_cpu, bytes.self_device);
        });
    module.def(
        "assemble", [](const nb::list& events, int device) { return assembled(events, device).trace; },
        nb::arg("events"), nb::arg("device"), "Build a trace from FunctionEvents made by hand.");
    module.def("readable_symbol", &readable_symbol, nb::arg("symbol"));
    module.def("nesting", &nesting, nb::arg("events"),
               "Return the index of the enclosing event for each FunctionEvent, or None.");
}

}  // namespace marey::bindings
