// device_timer.h: how long ranges took on a device that tells nothing of its work: events around each of
// them.
#pragma once

#include <memory>

#include <marey/device.h>

#include "record/source.h"

namespace marey {

/// While some session wants ranges timed on this device (RecordingNeeds::timed_devices), a point in the
/// device's queue is recorded where a range begins and where it ends. Their distance is asked for when a
/// session stops, or earlier when many of them wait, and written as work of the kind Timed.
std::shared_ptr<Source> make_device_timer(std::shared_ptr<DeviceRuntime> device);

}  // namespace marey
