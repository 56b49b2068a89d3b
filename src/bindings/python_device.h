// python_device.h: a device implemented in Python, as a DeviceRuntime.
#pragma once

#include <Python.h>

#include <memory>

#include <marey/device.h>

namespace marey::bindings {

/// Checks that the object has the `name`, `type` and methods that a device needs. Throws marey::Error. Needs
/// the GIL.
std::shared_ptr<DeviceRuntime> make_python_device(PyObject* device);

/// Creates the log object that the activity source receives. A new reference, or null with an error set.
PyObject* make_device_log(DeviceLog& log, DeviceType type);

}  // namespace marey::bindings
