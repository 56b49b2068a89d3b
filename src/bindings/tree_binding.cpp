// tree_binding.cpp: marey::EventTree, node by node.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include <marey/event_list.h>

#include "bindings/bind.h"
#include "bindings/trace_values.h"

namespace nb = nanobind;

namespace marey::bindings {
namespace {

std::uint32_t checked(const EventTree& tree, std::uint32_t node) {
    if (node >= tree.size()) throw nb::index_error("node index out of range");
    return node;
}

const char* tag_of(const EventTree& tree, std::uint32_t node) {
    const Trace& trace = tree.trace();
    const std::size_t ranges = trace.ranges().size();
    if (node >= ranges)
        return trace.memory().out_of_memory[node - ranges] != 0 ? "OutOfMemory" : "Allocation";
    if (trace.tracks()[trace.track_of(node)].device.type != DeviceType::Cpu) return "Kineto";
    switch (trace.sites()[trace.ranges().site[node]].scope) {
        case Scope::PythonFunction:
            return "PyCall";
        case Scope::CFunction:
            return "PyCCall";
        case Scope::GarbageCollection:
            return "PythonGC";
        case Scope::Device:
        case Scope::DeviceRuntime:
            return "Kineto";
        default:
            return "TorchOp";
    }
}

nb::list numbers(std::span<const std::uint32_t> values) {
    nb::list list;
    for (const std::uint32_t value : values) list.append(value);
    return list;
}

/// (tag, name, overload, start, end, thread); times are nanoseconds since 1970, within the window.
nb::tuple properties(const EventTree& tree, std::uint32_t node) {
    const Trace& trace = tree.trace();
    const WindowInfo& window = trace.window();
    const std::size_t ranges = trace.ranges().size();
    const bool is_range = checked(tree, node) < ranges;
    const Row thread_row =
        is_range ? trace.tracks()[trace.track_of(node)].thread : trace.memory().thread[node - ranges];
    const bool is_known = thread_row < trace.threads().size();
    const Row process = is_known ? trace.threads()[thread_row].process : kNoRow;
    const std::int64_t offset =
        process < trace.processes().size() ? trace.processes()[process].realtime_offset_ns : 0;
    std::int64_t start = is_range ? trace.ranges().start_ns[node] : trace.memory().time_ns[node - ranges];
    start = std::clamp(start, window.start_ns, std::max(window.start_ns, window.end_ns));
    const std::int64_t end = start + (is_range ? trace.clipped_duration_ns(node) : 0);
    const char* const tag = tag_of(tree, node);
    nb::object name =
        is_range ? text_object(trace.range_name(node))
                 : text_object(std::string_view(tag) == "OutOfMemory" ? "[OutOfMemory]" : "[memory]");
    nb::object overload =
        text_object(is_range ? trace.string(trace.sites()[trace.ranges().site[node]].overload) : "");
    return nb::make_tuple(tag, name, overload, start + offset, end + offset,
                          is_known ? trace.threads()[thread_row].id : 0u);
}

nb::object input_object(const Trace& trace, const Argument& value) {
    if (value.kind == ValueKind::Array) return array_object(trace, value);
    const std::span<const Argument> items = items_of(trace, value);
    if (!items.empty() && items[0].kind == ValueKind::Array) {
        nb::list list;
        for (const Argument& item : items) list.append(array_object(trace, item));
        return list;
    }
    return value_object(trace, value);
}

/// For a range: (inputs, scope, sequence number, file, line). Arrays are tuples as returned by
/// array_object().
nb::tuple operation(const EventTree& tree, std::uint32_t node) {
    const Trace& trace = tree.trace();
    if (checked(tree, node) >= trace.ranges().size()) throw nb::index_error("this node is not a range");
    const SiteInfo& site = trace.sites()[trace.ranges().site[node]];
    const RangeDetail* const detail = trace.range_detail(node);
    nb::list inputs;
    for (const Argument& value : trace.range_arguments(node)) {
        if (value.role == ArgumentRole::Input) inputs.append(input_object(trace, value));
    }
    return nb::make_tuple(inputs, static_cast<int>(site.scope), detail == nullptr ? -1 : detail->sequence,
                          text_object(trace.string(site.file)), site.line);
}

/// The line of the call; 0 if it was not recorded.
std::int64_t call_line(const EventTree& tree, std::uint32_t node) {
    const Trace& trace = tree.trace();
    if (checked(tree, node) >= trace.ranges().size()) return 0;
    for (const Argument& value : trace.range_arguments(node)) {
        if (value.role == ArgumentRole::Keyword && value.kind == ValueKind::Int &&
            trace.string(value.key) == "line")
            return value.integer;
    }
    return 0;
}

/// For an allocation: (row, address, bytes, total allocated, total reserved, device type, device index).
nb::tuple allocation(const EventTree& tree, std::uint32_t node) {
    const MemoryColumns memory = tree.trace().memory();
    const std::size_t ranges = tree.trace().ranges().size();
    if (checked(tree, node) < ranges) throw nb::index_error("this node is not an allocation");
    const std::size_t report = node - ranges;
    return nb::make_tuple(report, memory.address[report], memory.bytes[report],
                          memory.total_allocated[report], memory.total_reserved[report],
                          static_cast<int>(memory.device[report].type), memory.device[report].index);
}

}  // namespace

void bind_tree(nb::module_& module) {
    nb::class_<EventTree>(module, "EventTree", "The tree of ranges and allocations.")
        .def(nb::init<Trace>(), nb::arg("trace"))
        .def("__len__", &EventTree::size)
        .def("roots", [](const EventTree& tree) { return numbers(tree.roots()); })
        .def("parent", [](const EventTree& tree,
                          std::uint32_t node) { return row_object(tree.parent(checked(tree, node))); })
        .def("children", [](const EventTree& tree,
                            std::uint32_t node) { return numbers(tree.children(checked(tree, node))); })
        .def("properties", &properties)
        .def("operation", &operation)
        .def("call_line", &call_line)
        .def("allocation", &allocation);
}

}  // namespace marey::bindings
