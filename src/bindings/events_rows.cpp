// events_rows.cpp: the fields of an event, read from the trace.
#include "bindings/events_rows.h"

#include "bindings/trace_values.h"

namespace nb = nanobind;

namespace marey::bindings {
namespace {

constexpr double kEventNsPerUs = 1000.0;
constexpr std::string_view kStepName = "ProfilerStep#";

/// The fields that an event reads from the columns each time, without keeping them.
enum Key : std::uint8_t {
    kId,
    kName,
    kTraceName,
    kOverloadName,
    kNodeId,
    kThread,
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
constexpr std::array<const char*, kKeyCount> kKeyTexts = {"id",
                                                          "name",
                                                          "trace_name",
                                                          "overload_name",
                                                          "node_id",
                                                          "thread",
                                                          "scope",
                                                          "is_async",
                                                          "is_remote",
                                                          "device_type",
                                                          "device_index",
                                                          "device_resource_id",
                                                          "is_user_annotation",
                                                          "is_python_function"};
static_assert(kKeyCount == EventRows::kKeys);

}  // namespace

const char* core_key_name(std::size_t key) noexcept {
    return kKeyTexts[key];
}

EventRows::EventRows(const Trace& trace, nb::object event_type, nb::object interval_type,
                     nb::object device_type, nb::object use_device, bool with_flops)
    : events_(trace),
      event_type_(std::move(event_type)),
      interval_type_(std::move(interval_type)),
      device_type_(std::move(device_type)),
      use_device_(std::move(use_device)),
      with_flops_(with_flops),
      names_(trace.sites().size()),
      alive_(events_.size()) {}

std::size_t EventRows::checked(std::size_t event) const {
    if (event >= events_.size()) throw nb::index_error("event index out of range");
    return event;
}

nb::object EventRows::object(nb::handle self, std::size_t event) {
    PyObject* const known = alive_[checked(event)];
    if (known != nullptr && Py_REFCNT(known) > 0) return nb::borrow(known);
    PyObject* const made =
        make_event_row(reinterpret_cast<PyTypeObject*>(event_type_.ptr()), self.ptr(), event);
    if (made == nullptr) throw nb::python_error();
    alive_[event] = made;
    return nb::steal(made);
}

nb::list EventRows::objects(nb::handle self) {
    nb::list list;
    for (std::size_t event = 0; event < events_.size(); ++event) list.append(object(self, event));
    return list;
}

bool EventRows::has(const nb::list& list) const noexcept {
    if (is_changed || list.size() != alive_.size()) return false;
    for (std::size_t event = 0; event < alive_.size(); ++event) {
        if (PyList_GET_ITEM(list.ptr(), static_cast<Py_ssize_t>(event)) != alive_[event]) return false;
    }
    return true;
}

void EventRows::forget(std::size_t event, PyObject* object) noexcept {
    if (alive_[event] == object) alive_[event] = nullptr;
}

const EventRows::SiteNames& EventRows::names_of(std::uint32_t site) {
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

nb::object EventRows::device_object(DeviceType type) {
    nb::object& known = devices_[static_cast<std::size_t>(type)];
    if (!known.is_valid()) known = device_type_object(device_type_, type);
    return known;
}

nb::object EventRows::core(std::size_t event, std::size_t key) {
    const Trace& trace = events_.trace();
    const Row row = events_.range(event);
    return row == kNoRow ? report_field(trace, events_.report(event), key) : range_field(trace, row, key);
}

nb::object EventRows::range_field(const Trace& trace, Row row, std::size_t key) {
    const auto scope = [&] { return trace.sites()[trace.ranges().site[row]].scope; };
    const auto track = [&]() -> const TrackInfo& { return trace.tracks()[trace.track_of(row)]; };
    const auto is_overhead = [&] {
        return scope() == Scope::Device &&
               trace.string(trace.sites()[trace.ranges().site[row]].category) == "overhead";
    };
    switch (key) {
        case kId:
            return nb::int_(trace.window().first_id + row + 1);
        case kName:
            return names_of(trace.ranges().site[row]).name;
        case kTraceName:
            return names_of(trace.ranges().site[row]).trace_name;
        case kOverloadName:
            return names_of(trace.ranges().site[row]).overload;
        case kScope:
            return nb::int_(static_cast<int>(scope()));
        case kIsAsync:
            return nb::bool_(events_.is_async(events_.event_of(row)));
        case kIsRemote:
            return nb::bool_((trace.ranges().flags[row] & kRemote) != 0);
        case kIsUserAnnotation:
            return nb::bool_(scope() == Scope::User || scope() == Scope::Step);
        case kIsPythonFunction:
            return nb::bool_(scope() == Scope::PythonFunction || scope() == Scope::CFunction);
        case kDeviceType:
            // The time that recording costs is the host's.
            return device_object(is_overhead() ? DeviceType::Cpu : track().device.type);
        case kDeviceIndex:
            if (track().device.type != DeviceType::Cpu) return nb::int_(track().device.index);
            break;
        case kDeviceResourceId:
            if (track().device.type != DeviceType::Cpu) return nb::int_(track().stream);
            break;
        default:
            break;
    }
    return place_field(trace, track().thread, key);
}

nb::object EventRows::report_field(const Trace& trace, Row report, std::size_t key) {
    switch (key) {
        case kId:
            return nb::int_(trace.window().first_id + trace.ranges().size() + report + 1);
        case kName:
            return text_object(trace.memory().out_of_memory[report] != 0 ? "[OutOfMemory]" : "[memory]");
        case kTraceName:
            return nb::none();
        case kOverloadName:
            return text_object("");
        case kScope:
        case kDeviceIndex:
            return nb::int_(0);
        case kDeviceType:
            return device_object(DeviceType::Cpu);
        case kIsAsync:
        case kIsRemote:
        case kIsUserAnnotation:
        case kIsPythonFunction:
            return nb::bool_(false);
        default:
            return place_field(trace, trace.memory().thread[report], key);
    }
}

/// A field of the event's thread or process.
nb::object EventRows::place_field(const Trace& trace, Row thread_row, std::size_t key) const {
    const ThreadInfo* const thread =
        thread_row < trace.threads().size() ? &trace.threads()[thread_row] : nullptr;
    const ProcessInfo* const process = thread != nullptr && thread->process < trace.processes().size()
                                           ? &trace.processes()[thread->process]
                                           : nullptr;
    switch (key) {
        case kNodeId:
            return nb::int_(process != nullptr ? process->node : -1);
        case kDeviceIndex:
            return nb::int_(process != nullptr ? process->pid : 0);
        case kDeviceResourceId:
            if (thread != nullptr && thread->os_tid != 0) return nb::int_(thread->os_tid);
            break;
        default:
            break;
    }
    return nb::int_(thread != nullptr ? thread->id : 0u);
}

nb::object EventRows::time_range(std::size_t event) const {
    const std::int64_t start = events_.start_ns(checked(event));
    const std::int64_t end = start + events_.duration_ns(event);
    return interval_type_(static_cast<double>(start) / kEventNsPerUs,
                          static_cast<double>(end) / kEventNsPerUs);
}

/// (sequence number, thread of the forward range, number of the suspended call)
nb::tuple EventRows::detail(std::size_t event) const {
    const Row row = events_.range(checked(event));
    const RangeDetail* const detail = row == kNoRow ? nullptr : events_.trace().range_detail(row);
    if (detail == nullptr) return nb::make_tuple(-1, 0, -1);
    const nb::object call = detail->call == 0 ? nb::object(nb::int_(-1)) : nb::object(nb::int_(detail->call));
    return nb::make_tuple(detail->sequence, detail->forward_thread, call);
}

/// (shapes, structured shapes, structured strides, types, concrete inputs, keyword values). As in PyTorch, an
/// allocation has no shapes, and None for the rest.
nb::tuple EventRows::inputs(std::size_t event) const {
    const Trace& trace = events_.trace();
    const Row row = events_.range(checked(event));
    nb::list shapes, structured, strides, types, concrete;
    if (row == kNoRow)
        return nb::make_tuple(shapes, nb::none(), nb::none(), nb::none(), nb::none(), nb::none());
    const std::span<const Argument> values = trace.range_arguments(row);
    for (const Argument& value : values) {
        if (value.role != ArgumentRole::Input) continue;
        shapes.append(extents(trace, value, false, false));
        structured.append(extents(trace, value, false, true));
        strides.append(extents(trace, value, true, true));
        types.append(text_object(events_.input_type(value)));
        concrete.append(concrete_object(trace, value));
    }
    return nb::make_tuple(shapes, structured, strides, types, concrete, keyword_values(trace, values));
}

/// (flow id, flow type, whether the flow starts here, external id, linked id, Python id, Python parent id)
nb::tuple EventRows::ids(std::size_t event) const {
    const Trace& trace = events_.trace();
    const Row row = events_.range(checked(event));
    const auto first = static_cast<std::int64_t>(trace.window().first_id);
    const auto number = [first](Row range) { return range == kNoRow ? std::int64_t{0} : first + range + 1; };
    if (row == kNoRow) return nb::make_tuple(0, 0, false, 0, 0, -1, -1);
    const Scope scope = trace.sites()[trace.ranges().site[row]].scope;
    const std::optional<EventFlow> flow = events_.flow(event);
    const Row launch = events_.launch(event);
    const bool is_function = scope == Scope::PythonFunction || scope == Scope::CFunction;
    const std::int64_t linked = launch == kNoRow ? 0 : number(events_.operator_around(launch));
    const Row caller = is_function ? events_.function_around(row) : kNoRow;
    const int flow_type = !flow                                     ? 0
                          : flow->kind == LinkKind::ForwardBackward ? 1
                          : flow->kind == LinkKind::Launch          ? 2
                                                                    : 3;
    return nb::make_tuple(flow ? flow->link : 0, flow_type, flow && flow->is_start,
                          events_.has_id(event) ? number(row) : linked, linked,
                          is_function ? number(row) : -1, caller == kNoRow ? -1 : number(caller));
}

/// (number of the module among those of its class, enclosing modules)
nb::tuple EventRows::module(std::size_t event) {
    const Row row = events_.range(checked(event));
    if (row == kNoRow) return nb::make_tuple(-1, "");
    if (!modules_) modules_.emplace(events_.trace());
    const ModuleInfo* const module = modules_->find(row);
    return nb::make_tuple(module == nullptr ? std::int64_t{-1} : std::int64_t{module->number},
                          text_object(modules_->hierarchy(row)));
}

/// (name, device number, microseconds) of each kernel
nb::list EventRows::kernels(std::size_t event) {
    const Trace& trace = events_.trace();
    nb::list list;
    const bool is_timed = events_.is_timed(checked(event));
    for (const Row range : events_.launches(event)) {
        const std::int64_t ns =
            is_timed ? trace.ranges().duration_ns[range] : trace.clipped_duration_ns(range);
        list.append(nb::make_tuple(names_of(trace.ranges().site[range]).name,
                                   trace.tracks()[trace.track_of(range)].device.index,
                                   static_cast<double>(ns) / kEventNsPerUs));
    }
    return list;
}

}  // namespace marey::bindings
