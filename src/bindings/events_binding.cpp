// events_binding.cpp: kymo::EventList for Python's lazy events, and lists of events made by hand as traces.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <string>
#include <vector>

#include <kymo/assemble.h>
#include <kymo/event_list.h>

#include "bindings/bind.h"
#include "bindings/trace_values.h"

namespace nb = nanobind;

namespace kymo::bindings {
namespace {

constexpr double kNsPerUs = 1000.0;
constexpr std::string_view kStepName = "ProfilerStep#";

/// The keys that fill_core() writes.
enum Key : std::uint8_t {
    kId,
    kName,
    kTraceName,
    kOverloadName,
    kNodeId,
    kThread,
    kTimeRange,
    kScope,
    kIsAsync,
    kIsRemote,
    kDeviceType,
    kDeviceIndex,
    kDeviceResourceId,
    kIsUserAnnotation,
    kIsPythonFunction,
    kKeyCount
};
constexpr std::array<const char*, kKeyCount> kKeyTexts = {
    "id",       "name",      "trace_name",  "overload_name", "node_id",            "thread",
    "time_range", "scope",   "is_async",    "is_remote",     "device_type",        "device_index",
    "device_resource_id", "is_user_annotation", "is_python_function"};

/// The events of a trace, with the Python objects that many of them share.
class EventRows {
  public:
    EventRows(const Trace& trace, nb::object interval_type, nb::object device_type)
        : events_(trace), interval_type_(std::move(interval_type)), device_type_(std::move(device_type)) {
        for (std::size_t i = 0; i < kKeyCount; ++i) keys_[i] = nb::steal(PyUnicode_InternFromString(kKeyTexts[i]));
        names_.resize(trace.sites().size());
    }

    const EventList& events() const noexcept { return events_; }

    std::size_t checked(std::size_t event) const {
        if (event >= events_.size()) throw nb::index_error("there is no such event");
        return event;
    }

    void fill_core(std::size_t event, nb::dict fields);
    nb::tuple detail(std::size_t event) const;
    nb::tuple inputs(std::size_t event) const;
    nb::tuple ids(std::size_t event) const;
    nb::list kernels(std::size_t event);
    nb::object device_object(DeviceType type);

  private:
    struct SiteNames {
        nb::object name, trace_name, overload;
    };

    const SiteNames& names_of(std::uint32_t site) {
        SiteNames& names = names_[site];
        if (!names.name.is_valid()) {
            const SiteInfo& info = events_.trace().sites()[site];
            const std::string_view text = events_.trace().string(info.name);
            names.trace_name = text_object(text);
            names.name = text.starts_with(kStepName) ? text_object("ProfilerStep*") : names.trace_name;
            names.overload = text_object(events_.trace().string(info.overload));
        }
        return names;
    }

    EventList events_;
    nb::object interval_type_;
    nb::object device_type_;
    std::array<nb::object, kKeyCount> keys_;
    std::vector<SiteNames> names_;  ///< per site, made when needed
    std::array<nb::object, 256> devices_;
};

nb::object EventRows::device_object(DeviceType type) {
    nb::object& known = devices_[static_cast<std::size_t>(type)];
    if (!known.is_valid()) {
        try {
            known = device_type_(static_cast<int>(type));
        } catch (nb::python_error&) {  // a number that Python's enumeration does not have
            known = device_type_(static_cast<int>(DeviceType::Other));
        }
    }
    return known;
}

void EventRows::fill_core(std::size_t event, nb::dict fields) {
    const Trace& trace = events_.trace();
    const auto put = [&](Key key, nb::handle value) {
        if (!value.is_valid() || PyDict_SetItem(fields.ptr(), keys_[key].ptr(), value.ptr()) != 0)
            throw nb::python_error();
    };
    const auto put_number = [&](Key key, std::int64_t value) {
        put(key, nb::steal(PyLong_FromLongLong(value)));
    };
    const auto put_truth = [&](Key key, bool value) { put(key, nb::handle(value ? Py_True : Py_False)); };

    const Row row = events_.range(event);
    const Row report = events_.report(event);
    const TrackInfo* const track = row == kNoRow ? nullptr : &trace.tracks()[trace.track_of(row)];
    const Row thread_row = track != nullptr ? track->thread : trace.memory().thread[report];
    const ThreadInfo* const thread =
        thread_row < trace.threads().size() ? &trace.threads()[thread_row] : nullptr;
    const ProcessInfo* const process = thread != nullptr && thread->process < trace.processes().size()
                                           ? &trace.processes()[thread->process]
                                           : nullptr;
    const std::int64_t thread_id = thread != nullptr ? thread->id : 0;
    put_number(kThread, thread_id);
    put_number(kNodeId, process != nullptr ? process->node : -1);

    const std::int64_t start = events_.start_ns(event);
    const std::int64_t end = start + events_.duration_ns(event);
    const nb::object times[2] = {nb::float_(static_cast<double>(start) / kNsPerUs),
                                 nb::float_(static_cast<double>(end) / kNsPerUs)};
    PyObject* arguments[3] = {nullptr, times[0].ptr(), times[1].ptr()};
    put(kTimeRange, nb::steal(PyObject_Vectorcall(interval_type_.ptr(), arguments + 1,
                                                  2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr)));
    if (row == kNoRow) {
        put_number(kId, static_cast<std::int64_t>(trace.ranges().size()) + report + 1);
        put(kName, text_object(trace.memory().out_of_memory[report] != 0 ? "[OutOfMemory]" : "[memory]"));
        put(kTraceName, nb::handle(Py_None));
        put(kOverloadName, text_object(""));
        put_number(kScope, 0);
        for (const Key key : {kIsAsync, kIsRemote, kIsUserAnnotation, kIsPythonFunction}) put_truth(key, false);
        put(kDeviceType, device_object(DeviceType::Cpu));
        put_number(kDeviceIndex, 0);
        put_number(kDeviceResourceId, thread_id);
        return;
    }
    const std::uint32_t site = trace.ranges().site[row];
    const Scope scope = trace.sites()[site].scope;
    const SiteNames& names = names_of(site);
    const bool on_device = track->device.type != DeviceType::Cpu;
    put_number(kId, std::int64_t{row} + 1);
    put(kName, names.name);
    put(kTraceName, names.trace_name);
    put(kOverloadName, names.overload);
    put_number(kScope, static_cast<int>(scope));
    put_truth(kIsAsync, track->kind == TrackKind::Async);
    put_truth(kIsRemote, (trace.ranges().flags[row] & kRemote) != 0);
    put_truth(kIsUserAnnotation, scope == Scope::User || scope == Scope::Step);
    put_truth(kIsPythonFunction, scope == Scope::PythonFunction || scope == Scope::CFunction);
    put(kDeviceType, device_object(track->device.type));
    put_number(kDeviceIndex, on_device ? track->device.index : process != nullptr ? process->pid : 0);
    put_number(kDeviceResourceId, on_device                                   ? track->stream
                                  : thread != nullptr && thread->os_tid != 0 ? thread->os_tid
                                                                             : thread_id);
}

/// (sequence number, thread of the forward range)
nb::tuple EventRows::detail(std::size_t event) const {
    const Row row = events_.range(event);
    const RangeDetail* const detail = row == kNoRow ? nullptr : events_.trace().range_detail(row);
    if (detail == nullptr) return nb::make_tuple(-1, 0);
    return nb::make_tuple(detail->sequence, detail->forward_thread);
}

/// (shapes, structured shapes, structured strides, types, concrete inputs, keyword values)
nb::tuple EventRows::inputs(std::size_t event) const {
    const Trace& trace = events_.trace();
    const Row row = events_.range(event);
    nb::list shapes, structured, strides, types, concrete;
    if (row == kNoRow) return nb::make_tuple(shapes, structured, strides, types, concrete, nb::dict());
    const std::span<const Argument> values = trace.range_arguments(row);
    for (const Argument& value : values) {
        if (value.role != ArgumentRole::Input) continue;
        shapes.append(extents(trace, value, false, false));
        structured.append(extents(trace, value, false, true));
        strides.append(extents(trace, value, true, true));
        types.append(text_object(events_.input_type(value)));
        concrete.append(value_object(trace, value));
    }
    return nb::make_tuple(shapes, structured, strides, types, concrete, keyword_values(trace, values));
}

/// (flow id, flow type, whether it starts there, external id, linked id, Python id, Python parent id)
nb::tuple EventRows::ids(std::size_t event) const {
    const Trace& trace = events_.trace();
    const Row row = events_.range(event);
    const auto number = [](Row range) { return range == kNoRow ? std::int64_t{0} : std::int64_t{range} + 1; };
    if (row == kNoRow) return nb::make_tuple(0, 0, false, 0, 0, -1, -1);
    const Scope scope = trace.sites()[trace.ranges().site[row]].scope;
    const std::optional<EventFlow> flow = events_.flow(event);
    const Row launch = events_.launch(event);
    const bool on_device = trace.tracks()[trace.track_of(row)].device.type != DeviceType::Cpu;
    const bool is_operator = !on_device && static_cast<int>(scope) <= static_cast<int>(Scope::RuntimeModel) &&
                             scope != Scope::User;
    const bool is_function = scope == Scope::PythonFunction || scope == Scope::CFunction;
    const std::int64_t linked = launch == kNoRow ? 0 : number(events_.operator_around(launch));
    const Row caller = is_function ? events_.function_around(row) : kNoRow;
    const int flow_type = !flow                                      ? 0
                          : flow->kind == LinkKind::ForwardBackward ? 1
                          : flow->kind == LinkKind::Launch          ? 2
                                                                     : 3;
    return nb::make_tuple(flow ? flow->link : 0, flow_type, flow && flow->is_start,
                          is_operator ? number(row) : linked, linked, is_function ? number(row) : -1,
                          caller == kNoRow ? -1 : number(caller));
}

/// (name, number of the device, microseconds) of each
nb::list EventRows::kernels(std::size_t event) {
    const Trace& trace = events_.trace();
    nb::list list;
    for (const Row range : events_.launches(event)) {
        list.append(nb::make_tuple(names_of(trace.ranges().site[range]).name,
                                   trace.tracks()[trace.track_of(range)].device.index,
                                   static_cast<double>(trace.clipped_duration_ns(range)) / kNsPerUs));
    }
    return list;
}

nb::object index_or_none(std::uint32_t event) {
    return event == kNoRow ? nb::object(nb::none()) : nb::object(nb::int_(event));
}

// ---- events made by hand

template <typename T>
T item(const nb::tuple& fields, std::size_t index) {
    return nb::cast<T>(fields[index]);
}

DescribedEvent described(const nb::tuple& fields) {
    DescribedEvent event;
    std::size_t next = 0;
    event.name = item<std::string>(fields, next++);
    event.overload = item<std::string>(fields, next++);
    event.thread = item<std::int64_t>(fields, next++);
    event.node = item<std::int32_t>(fields, next++);
    event.start_ns = item<std::int64_t>(fields, next++);
    event.duration_ns = item<std::int64_t>(fields, next++);
    const int scope = item<int>(fields, next++);
    event.scope = scope >= 0 && scope < kScopeCount ? static_cast<Scope>(scope) : Scope::Function;
    event.is_async = item<bool>(fields, next++);
    event.is_remote = item<bool>(fields, next++);
    event.device.type = static_cast<DeviceType>(item<int>(fields, next++));
    event.device.index = item<std::int32_t>(fields, next++);
    event.stream = item<std::int64_t>(fields, next++);
    event.sequence = item<std::int64_t>(fields, next++);
    event.forward_thread = item<std::int64_t>(fields, next++);
    event.input_shapes = item<std::vector<std::vector<std::int64_t>>>(fields, next++);
    event.stack = item<std::vector<std::string>>(fields, next++);
    for (const nb::handle kernel : item<nb::list>(fields, next++)) {
        const nb::tuple parts = nb::cast<nb::tuple>(kernel);
        event.kernels.push_back(
            {item<std::string>(parts, 0), item<std::int32_t>(parts, 1), item<std::int64_t>(parts, 2)});
    }
    event.cpu_bytes = item<std::int64_t>(fields, next++);
    event.device_bytes = item<std::int64_t>(fields, next++);
    return event;
}

AssembledTrace assembled(const nb::list& events, int device) {
    std::vector<DescribedEvent> all;
    all.reserve(events.size());
    for (const nb::handle fields : events) all.push_back(described(nb::cast<nb::tuple>(fields)));
    const nb::gil_scoped_release unlocked;
    return assemble_trace(all, static_cast<DeviceType>(device));
}

/// For each event the index of the one around it, or None.
nb::list nesting(const nb::list& events) {
    const AssembledTrace made = assembled(events, static_cast<int>(DeviceType::Cuda));
    std::vector<std::uint32_t> event_of(made.trace.ranges().size(), kNoRow);
    for (std::uint32_t i = 0; i < made.row_of.size(); ++i) event_of[made.row_of[i]] = i;
    nb::list parents;
    for (const Row row : made.row_of) {
        const Row parent = made.trace.ranges().parent[row];
        parents.append(index_or_none(parent == kNoRow ? kNoRow : event_of[parent]));
    }
    return parents;
}

}  // namespace

void bind_events(nb::module_& module) {
    nb::class_<EventRows>(module, "EventRows", "The events of a trace, in order of time.")
        .def(nb::init<const Trace&, nb::object, nb::object>(), nb::arg("trace"), nb::arg("interval_type"),
             nb::arg("device_type"))
        .def("__len__", [](const EventRows& rows) { return rows.events().size(); })
        .def("fill_core", [](EventRows& rows, std::size_t event,
                             nb::dict fields) { rows.fill_core(rows.checked(event), fields); })
        .def("detail", [](const EventRows& rows, std::size_t event) { return rows.detail(rows.checked(event)); })
        .def("inputs", [](const EventRows& rows, std::size_t event) { return rows.inputs(rows.checked(event)); })
        .def("ids", [](const EventRows& rows, std::size_t event) { return rows.ids(rows.checked(event)); })
        .def("kernels", [](EventRows& rows, std::size_t event) { return rows.kernels(rows.checked(event)); })
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
                 return index_or_none(rows.events().parent(rows.checked(event)));
             })
        .def("children",
             [](const EventRows& rows, std::size_t event) {
                 nb::list list;
                 for (const std::uint32_t child : rows.events().children(rows.checked(event))) list.append(child);
                 return list;
             })
        .def("event_of_range",
             [](const EventRows& rows, Row range) { return index_or_none(rows.events().event_of(range)); })
        .def("self_ns",
             [](const EventRows& rows, std::size_t event) { return rows.events().self_ns(rows.checked(event)); })
        .def("device_total_ns",
             [](const EventRows& rows, std::size_t event) {
                 return rows.events().device_total_ns(rows.checked(event));
             })
        .def("bytes",
             [](const EventRows& rows, std::size_t event) {
                 const EventBytes bytes = rows.events().bytes(rows.checked(event));
                 return nb::make_tuple(bytes.cpu, bytes.device, bytes.self_cpu, bytes.self_device);
             })
        .def("flops", [](const EventRows& rows, std::size_t event) -> nb::object {
            const std::optional<double> flops = rows.events().flops(rows.checked(event));
            return flops ? nb::object(nb::float_(*flops)) : nb::object(nb::none());
        });
    module.def(
        "assemble", [](const nb::list& events, int device) { return assembled(events, device).trace; },
        nb::arg("events"), nb::arg("device"), "A trace from described events.");
    module.def("readable_symbol", &readable_symbol, nb::arg("symbol"));
    module.def("nesting", &nesting, nb::arg("events"),
               "For each described event the index of the one around it, or None.");
}

}  // namespace kymo::bindings
