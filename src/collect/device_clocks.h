// device_clocks.h: the times of devices brought onto the recorder's clock.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <marey/detail/log_format.h>
#include <marey/value.h>

namespace marey {

/// What was measured of the clocks of all devices. Filled, then asked.
class DeviceClocks {
  public:
    /// A whole DeviceClock record.
    void add(const detail::LongRecord& head, const detail::DevicePlace& place);
    /// After the last add().
    void sort();
    /// When it was, of a time by the device's account. Between two readings their line; before the first and
    /// behind the last one the nearest line goes on for as long as it was, then stays.
    std::uint64_t correct(Device device, std::uint64_t ticks) const;
    /// How often the clocks were read, and by how much times can be off: JSON. "": never.
    std::string report(double ticks_per_second) const;

  private:
    struct Reading {
        std::uint64_t ticks;
        std::int64_t offset;
        std::uint32_t error;
    };
    std::map<std::pair<DeviceType, std::int32_t>, std::vector<Reading>> readings_;
};

}  // namespace marey
