// memory_binding.cpp: allocation reports from Python, marey::ArrayIds and marey::MemoryProfile.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include <marey/memory.h>
#include <marey/memory_profile.h>
#include <marey/value.h>

#include "bindings/bind.h"
#include "bindings/trace_values.h"

namespace nb = nanobind;

namespace marey::bindings {
namespace {

Device device_of(const std::string& text) {
    return text == "cpu" ? Device{} : parse_device(text);
}

/// (array, allocation), each None if there is none.
nb::tuple id_object(const std::vector<ArrayId>& ids, std::size_t row) {
    const ArrayId id = row < ids.size() ? ids[row] : ArrayId{};
    return nb::make_tuple(row_object(id.array), row_object(id.allocation == 0 ? kNoRow : id.allocation));
}

std::string device_text(Device device) {
    std::string text = device_type_name(device.type);
    if (device.type != DeviceType::Cpu && device.index >= 0) text += ":" + std::to_string(device.index);
    return text;
}

std::int64_t wall_clock(const Trace& trace, Row process) {
    if (process >= trace.processes().size()) process = 0;
    return trace.processes().empty() ? 0 : trace.processes()[process].realtime_offset_ns;
}

/// For each allocation from 1: (array or None, device, address, bytes, versions).
nb::list blocks(const MemoryProfile& profile) {
    nb::list list;
    for (const MemoryBlock& block : profile.blocks().subspan(1)) {
        list.append(nb::make_tuple(row_object(block.array), device_text(block.device), block.address,
                                   block.bytes, block.versions));
    }
    return list;
}

/// For each step: (node, whether it is backward, edges); edges are (allocation, version, taken, freed,
/// written).
nb::list nodes(const MemoryProfile& profile) {
    nb::list list;
    for (const FlowNode& node : profile.nodes()) {
        nb::list edges;
        for (const FlowEdge& edge : node.edges) {
            edges.append(
                nb::make_tuple(edge.allocation, edge.version, edge.is_taken, edge.is_freed, edge.is_written));
        }
        list.append(nb::make_tuple(node.node, node.is_backward, edges));
    }
    return list;
}

/// (nanoseconds since 1970 or -1, action, allocation or 0, version, bytes, device).
nb::list timeline(const MemoryProfile& profile) {
    nb::list list;
    for (const MemoryEvent& event : profile.timeline()) {
        const std::int64_t time = event.time_ns == MemoryEvent::kBefore
                                      ? -1
                                      : event.time_ns + wall_clock(profile.trace(), event.process);
        list.append(nb::make_tuple(time, static_cast<int>(event.action), event.allocation, event.version,
                                   event.bytes, device_text(event.device)));
    }
    return list;
}

}  // namespace

void bind_memory(nb::module_& module) {
    module.def(
        "report_allocation",
        [](std::uint64_t address, std::int64_t bytes, std::int64_t total_allocated,
           std::int64_t total_reserved, const std::string& device) {
            const Device where = device_of(device);
            // NOLINTNEXTLINE(performance-no-int-to-ptr): Python passes addresses as integers
            report_allocation(reinterpret_cast<const void*>(address), bytes, total_allocated, total_reserved,
                              where);
        },
        nb::arg("address"), nb::arg("bytes"), nb::arg("total_allocated") = 0, nb::arg("total_reserved") = 0,
        nb::arg("device") = "cpu",
        "Report that an allocator has allocated (bytes > 0) or freed (bytes < 0) memory.");
    module.def(
        "report_out_of_memory",
        [](std::int64_t bytes, std::int64_t total_allocated, std::int64_t total_reserved,
           const std::string& device) {
            report_out_of_memory(bytes, total_allocated, total_reserved, device_of(device));
        },
        nb::arg("bytes"), nb::arg("total_allocated") = 0, nb::arg("total_reserved") = 0,
        nb::arg("device") = "cpu", "Report that an allocator could not allocate memory.");
    module.def("is_recording_memory", &is_recording_memory,
               "Return whether allocation reports of this thread are recorded.");
}

void bind_memory_profile(nb::module_& module) {
    nb::class_<ArrayIds>(module, "ArrayIds", "The identities and allocations of the arrays in a trace.")
        .def("__init__", [](ArrayIds* place, const Trace& trace) { new (place) ArrayIds(array_ids(trace)); })
        .def("of_array", [](const ArrayIds& ids, std::size_t row) { return id_object(ids.arrays, row); })
        .def("of_report", [](const ArrayIds& ids, std::size_t row) { return id_object(ids.reports, row); });
    nb::class_<MemoryProfile>(module, "MemoryProfile", "The memory of a trace by category.")
        .def(nb::init<Trace>(), nb::arg("trace"), nb::call_guard<nb::gil_scoped_release>())
        .def("blocks", &blocks)
        .def("nodes", &nodes)
        .def("timeline", &timeline)
        .def("category", [](const MemoryProfile& profile, std::uint32_t allocation, std::uint32_t version) {
            return static_cast<int>(profile.category(allocation, version));
        });
}

}  // namespace marey::bindings
