// python_device.h: a device that is written in Python, as C++ knows devices.
#pragma once

#include <Python.h>

#include <memory>

#include <marey/device.h>

namespace marey::bindings {

/// Checks that the object has what a device needs: `name`, `type`, and its methods. Throws marey::Error.
/// Needs the GIL.
std::shared_ptr<DeviceRuntime> make_python_device(PyObject* device);

/// The log of a device, as the object's activity source gets it. A new reference; null with an error set.
PyObject* make_device_log(DeviceLog& log, DeviceType type);

}  // namespace marey::bindings
