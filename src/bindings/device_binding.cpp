// device_binding.cpp: the registered devices, and points in their queues.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>

#include <marey/device.h>
#include <marey/error.h>

#include "bindings/bind.h"

namespace nb = nanobind;

namespace marey::bindings {
namespace {

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

void bind_device_objects(nb::module_& module) {
    const auto no_gil = nb::call_guard<nb::gil_scoped_release>();
    nb::class_<RecordedPoint>(module, "DeviceEvent", "A point in the queue of a device.")
        .def_prop_ro("device", [](const RecordedPoint& point) { return point.event->device(); });
    using Held = std::shared_ptr<DeviceRuntime>;
    nb::class_<DeviceRuntime>(module, "RegisteredDevice", "A registered device.")
        .def_prop_ro("name", &DeviceRuntime::name)
        .def_prop_ro("type", [](const DeviceRuntime& self) { return static_cast<int>(self.type()); })
        .def_prop_ro(
            "has_activities", [](DeviceRuntime& self) { return self.activities() != nullptr; },
            "Whether it has an activity source.")
        .def(
            "enabled", [](const DeviceRuntime& self) { return self.unavailable().empty(); }, no_gil)
        .def("record",
             [](const Held& self) {
                 auto event = self->record();
                 if (event == nullptr) throw Error("Events were not recorded for " + self->name());
                 return std::make_unique<RecordedPoint>(RecordedPoint{self, std::move(event)});
             })
        .def("elapsed", &elapsed, nb::arg("start"), nb::arg("end"),
             "Return the microseconds between two events. Waits for both.")
        .def("mark", &DeviceRuntime::mark)
        .def("range_push", &DeviceRuntime::range_push)
        .def("range_pop", &DeviceRuntime::range_pop)
        .def("on_each_device",
             [](DeviceRuntime& self, const nb::callable& visit) {
                 self.on_each_device([&](std::int32_t device) { visit(device); });
             })
        .def("synchronize", &DeviceRuntime::synchronize, no_gil);
}

}  // namespace

void bind_devices(nb::module_& module) {
    bind_device_objects(module);
    const auto no_gil = nb::call_guard<nb::gil_scoped_release>();
    module.def("find_device", &find_device, nb::arg("name"), no_gil,
               "Return the RegisteredDevice with that name, or None.");
    module.def("device_error", &device_error, nb::arg("name"), no_gil,
               "Return why a device cannot be recorded and how to fix that; empty if it can.");
    module.def("registered_devices", &registered_devices, no_gil,
               "Return the names of all registered devices.");
    module.def("time_on_device", &time_on_device, nb::arg("range_name"), nb::arg("is_timed") = true,
               "Set whether ranges with that name are timed with device events.");
}

}  // namespace marey::bindings
