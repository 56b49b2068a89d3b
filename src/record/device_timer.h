// device_timer.h: times ranges on a device that does not report its work, with events around each range.
#pragma once

#include <memory>

#include <marey/device.h>

#include "record/source.h"

namespace marey {

/// While a session needs ranges timed on this device (RecordingNeeds::timed_devices), an event is recorded in
/// the device's queue where a range begins and where it ends. The time between them is read when a session
/// stops, or earlier when many pairs wait, and written as work of the kind Timed.
std::shared_ptr<Source> make_device_timer(std::shared_ptr<DeviceRuntime> device);

}  // namespace marey
