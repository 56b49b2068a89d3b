// device_binding.cpp: the device registry, device logs, and registered devices.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <marey/device.h>
#include <marey/error.h>

#include "bindings/bind.h"
#include "bindings/object_values.h"
#include "bindings/python_device.h"
#include "sources/python/python_text.h"

namespace nb = nanobind;

namespace marey::bindings {
namespace {

constexpr std::array<std::pair<const char*, DeviceWorkKind>, 7> kKinds = {{
    {"kernel", DeviceWorkKind::Kernel},
    {"copy", DeviceWorkKind::Copy},
    {"set", DeviceWorkKind::Set},
    {"wait", DeviceWorkKind::Wait},
    {"overhead", DeviceWorkKind::Overhead},
    {"migration", DeviceWorkKind::Migration},
    {"timed", DeviceWorkKind::Timed},
}};

DeviceWorkKind kind_of(const std::string& name) {
    std::string known;
    for (const auto& [text, kind] : kKinds) {
        if (name == text) return kind;
        known += (known.empty() ? "" : ", ") + std::string(text);
    }
    throw nb::value_error(("unknown kind of work '" + name + "'; known kinds: " + known).c_str());
}

/// The log of an activity source. The underlying DeviceLog exists for the lifetime of the process.
struct PythonDeviceLog {
    DeviceLog* log = nullptr;
    DeviceType type = DeviceType::Other;
    bool needs_memory = false;
};

/// Device work given as keyword arguments.
struct GivenWork {
    DeviceWork work;
    ObjectValues objects;
    std::vector<std::string> keys;
    std::vector<KeyedValue> values;

    void add_values(const nb::dict& given) {
        keys.reserve(given.size());  // the values point into them
        for (const auto [key, value] : given) {
            keys.emplace_back();
            python::with_text(key.ptr(), [&](std::string_view text) { keys.back() = text; });
            values.push_back({keys.back(), objects.value(value.ptr())});
        }
        work.values = values;
    }
};

template <class Number>
void set_triple(Number (&target)[3], const nb::sequence& given, const char* what) {
    const std::size_t size = nb::len(given);
    if (size > 3) throw nb::value_error((std::string(what) + " must have at most three sizes").c_str());
    for (std::size_t i = 0; i < 3; ++i) target[i] = i < size ? nb::cast<Number>(given[i]) : Number{1};
}

std::uint64_t checked_end(std::uint64_t start, std::uint64_t end) {
    if (end < start) throw nb::value_error("invalid times: the work ends before it starts");
    return end;
}

void add_work(nb::class_<PythonDeviceLog>& log) {
    log.def(
        "work",
        [](PythonDeviceLog& self, const std::string& name, std::uint64_t start, std::uint64_t end,
           const std::string& kind, std::int32_t device, std::int64_t stream, std::uint32_t context,
           std::uint32_t correlation, std::uint64_t bytes, const nb::sequence& grid,
           const nb::sequence& block, std::uint16_t registers, std::uint32_t static_shared,
           std::uint32_t dynamic_shared, std::uint64_t graph_node, std::uint64_t range,
           const nb::dict& values) {
            GivenWork given;
            DeviceWork& work = given.work;
            work.kind = kind_of(kind);
            work.site = DeviceLog::work_site(work.kind, name);
            work.device = {self.type, device};
            work.stream = stream;
            work.context = context;
            work.correlation = correlation;
            work.start = start;
            work.end = checked_end(start, end);
            work.range = range;
            work.bytes = bytes;
            if (nb::len(grid) != 0) set_triple(work.kernel.grid, grid, "grid");
            if (nb::len(block) != 0) set_triple(work.kernel.block, block, "block");
            work.kernel.registers = registers;
            work.kernel.static_shared = static_shared;
            work.kernel.dynamic_shared = dynamic_shared;
            work.kernel.graph_node = graph_node;
            given.add_values(values);
            self.log->write(work);
        },
        nb::arg("name"), nb::arg("start"), nb::arg("end"), nb::kw_only(), nb::arg("kind") = "kernel",
        nb::arg("device") = 0, nb::arg("stream") = -1, nb::arg("context") = 0, nb::arg("correlation") = 0,
        nb::arg("bytes") = 0, nb::arg("grid") = nb::make_tuple(), nb::arg("block") = nb::make_tuple(),
        nb::arg("registers") = 0, nb::arg("static_shared") = 0, nb::arg("dynamic_shared") = 0,
        nb::arg("graph_node") = 0, nb::arg("range") = 0, nb::arg("values") = nb::dict(),
        "Record device work from start to end, in ticks of device_ticks().");
}

void add_others(nb::class_<PythonDeviceLog>& log) {
    log.def(
        "call",
        [](PythonDeviceLog& self, const std::string& name, std::uint64_t start, std::uint64_t end,
           std::uint32_t correlation, std::int32_t thread, std::int32_t result, bool is_driver) {
            DeviceCall call;
            call.site = DeviceLog::call_site(name, is_driver);
            call.os_tid = thread != 0 ? thread : static_cast<std::int32_t>(::gettid());
            call.correlation = correlation;
            call.start = start;
            call.end = checked_end(start, end);
            call.result = result;
            self.log->write(call);
        },
        nb::arg("name"), nb::arg("start"), nb::arg("end"), nb::kw_only(), nb::arg("correlation") = 0,
        nb::arg("thread") = 0, nb::arg("result") = 0, nb::arg("is_driver") = false,
        "Record a runtime call on the host, by this thread or the thread with that native id.");
    log.def(
        "memory",
        [](PythonDeviceLog& self, std::uint64_t address, std::int64_t bytes, std::int64_t total_allocated,
           std::int64_t total_reserved, std::int32_t device, std::uint64_t time, bool is_out_of_memory) {
            MemoryReport report{};
            // NOLINTNEXTLINE(performance-no-int-to-ptr): Python passes addresses as integers
            report.address = reinterpret_cast<const void*>(address);
            report.bytes = bytes;
            report.total_allocated = total_allocated;
            report.total_reserved = total_reserved;
            report.device = {self.type, device};
            report.is_out_of_memory = is_out_of_memory;
            self.log->write(report, time != 0 ? time : device_ticks());
        },
        nb::arg("address"), nb::arg("bytes"), nb::kw_only(), nb::arg("total_allocated") = 0,
        nb::arg("total_reserved") = 0, nb::arg("device") = 0, nb::arg("time") = 0,
        nb::arg("is_out_of_memory") = false,
        "Record device memory that was allocated (bytes > 0) or freed (bytes < 0).");
    log.def(
        "lost", [](PythonDeviceLog& self, std::uint64_t records) { self.log->count_lost(records); },
        nb::arg("records"), "Add a number of lost records to the dropped events of the trace.");
    log.def_rw("needs_memory", &PythonDeviceLog::needs_memory);
}

/// An event with the device that recorded it.
struct RecordedPoint {
    std::shared_ptr<DeviceRuntime> device;
    std::unique_ptr<DeviceEvent> event;
};

double elapsed(const std::shared_ptr<DeviceRuntime>& device, const RecordedPoint& from,
               const RecordedPoint& to) {
    if (from.device != device || to.device != device)
        throw Error("Events were not recorded for " + device->name());
    if (from.event->device() != to.event->device())
        throw Error("Events are not on the same device: " + std::to_string(from.event->device()) + " and " +
                    std::to_string(to.event->device()));
    const nb::gil_scoped_release released;
    return device->elapsed_us(*from.event, *to.event);
}

void bind_devices_of_others(nb::module_& module) {
    nb::class_<RecordedPoint>(module, "DeviceEvent", "A point in the queue of a device.")
        .def_prop_ro("device", [](const RecordedPoint& point) { return point.event->device(); });
    using Held = std::shared_ptr<DeviceRuntime>;
    nb::class_<DeviceRuntime>(module, "RegisteredDevice", "A registered device.")
        .def_prop_ro("name", &DeviceRuntime::name)
        .def_prop_ro("type", [](const DeviceRuntime& self) { return static_cast<int>(self.type()); })
        .def_prop_ro(
            "has_activities", [](DeviceRuntime& self) { return self.activities() != nullptr; },
            "Whether it has an activity source.")
        .def("enabled",
             [](const DeviceRuntime& self) {
                 const nb::gil_scoped_release released;
                 return self.unavailable().empty();
             })
        .def("record",
             [](const Held& self) {
                 auto event = self->record();
                 if (event == nullptr) throw Error("Events were not recorded for " + self->name());
                 return std::make_unique<RecordedPoint>(RecordedPoint{self, std::move(event)});
             })
        .def("elapsed", &elapsed, nb::arg("start"), nb::arg("end"),
             "Return the microseconds between two events. Waits for both.")
        .def("mark", [](DeviceRuntime& self, const std::string& name) { self.mark(name); })
        .def("range_push", [](DeviceRuntime& self, const std::string& name) { self.range_push(name); })
        .def("range_pop", &DeviceRuntime::range_pop)
        .def("on_each_device",
             [](DeviceRuntime& self, const nb::callable& visit) {
                 self.on_each_device([&](std::int32_t device) { visit(device); });
             })
        .def("synchronize", [](DeviceRuntime& self) {
            const nb::gil_scoped_release released;
            self.synchronize();
        });
}

}  // namespace

PyObject* make_device_log(DeviceLog& log, DeviceType type) {
    return nb::cast(PythonDeviceLog{&log, type}).release().ptr();
}

void bind_devices(nb::module_& module) {
    nb::class_<PythonDeviceLog> log(module, "DeviceLog",
                                    "The log that an activity source writes to, from any thread.");
    add_work(log);
    add_others(log);
    bind_devices_of_others(module);

    module.def(
        "register_device",
        [](const nb::object& device) {
            std::shared_ptr<DeviceRuntime> made = make_python_device(device.ptr());
            const nb::gil_scoped_release released;
            register_device(std::move(made));
        },
        nb::arg("device"), "Register a device for the lifetime of the process.");
    module.def(
        "find_device",
        [](const std::string& name) {
            const nb::gil_scoped_release released;
            return find_device(name);
        },
        nb::arg("name"), "Return the RegisteredDevice with that name, or None.");
    module.def(
        "device_error",
        [](const std::string& name) {
            const nb::gil_scoped_release released;
            return device_error(name);
        },
        nb::arg("name"), "Return why a device cannot be recorded and how to fix that; empty if it can.");
    module.def(
        "registered_devices",
        [] {
            const nb::gil_scoped_release released;
            return registered_devices();
        },
        "Return the names of all registered devices.");
    module.def("time_on_device", &time_on_device, nb::arg("range_name"), nb::arg("is_timed") = true,
               "Set whether ranges with that name are timed with device events.");
    module.def("device_ticks", &device_ticks, "Return the current time on the clock of DeviceLog.");
    module.def("device_ticks_per_second", &device_ticks_per_second);
}

}  // namespace marey::bindings
