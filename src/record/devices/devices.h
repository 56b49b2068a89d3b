// devices.h: the devices that a session can record, the two sources of each, and the ranges that they time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <marey/device.h>
#include <marey/value.h>

#include "record/source.h"

namespace marey {

inline std::uint32_t device_bit(DeviceType type) noexcept {
    const auto number = static_cast<unsigned>(type);
    return number < 32 ? std::uint32_t{1} << number : 0;
}

struct RequestedDevices {
    std::uint32_t types = 0;            ///< a bit each
    std::uint32_t without_source = 0;   ///< the subset that does not report its work
    std::vector<std::string> problems;  ///< why other devices, or some of their work, cannot be recorded
};

/// Finds, and loads, the devices with these names.
RequestedDevices find_devices(std::span<const std::string> names, std::uint32_t device_activities);

/// Called when the program initialises that device's library. Loads nothing.
void device_begins(std::string_view name) noexcept;

/// Times ranges with the device's events, for sessions that request it.
std::shared_ptr<Source> device_timer(std::shared_ptr<DeviceRuntime> device);

/// Records what the device reports. Its activities() are not null.
std::shared_ptr<Source> device_source(std::shared_ptr<DeviceRuntime> device);

/// Whether ranges of this name are timed on devices (time_on_device()). Any thread; takes no lock.
bool is_timed_on_device(std::string_view range_name) noexcept;

}  // namespace marey
