// devices.h: the devices that a session can record.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <marey/value.h>

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

}  // namespace marey
