// device_sources.h: the two sources of each registered device, and the ranges that they time.
#pragma once

#include <memory>
#include <string_view>

#include <marey/device.h>

#include "record/source.h"

namespace marey {

/// Times ranges with the device's events, for sessions that request it.
std::shared_ptr<Source> device_timer(std::shared_ptr<DeviceRuntime> device);

/// Records what the device reports. Its activities() are not null.
std::shared_ptr<Source> device_source(std::shared_ptr<DeviceRuntime> device);

/// Whether ranges of this name are timed on devices (time_on_device()). Any thread; takes no lock.
bool is_timed_on_device(std::string_view range_name) noexcept;

}  // namespace marey
