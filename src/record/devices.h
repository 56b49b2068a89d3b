// devices.h: which devices a session can have.
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
    std::uint32_t without_source = 0;   ///< of them, those that tell nothing of their work
    std::vector<std::string> troubles;  ///< why others cannot be had, or not all of them
};

/// Finds, and loads, the devices of these names.
RequestedDevices find_devices(std::span<const std::string> names, std::uint32_t device_activities);

/// The program initialises that device's library. Loads nothing.
void device_begins(std::string_view name) noexcept;

}  // namespace marey
