// device_clocks.h: converts device times to the recorder's clock.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <marey/detail/log_format.h>
#include <marey/value.h>

namespace marey {

/// The clock readings of all devices. Filled first, then queried.
class DeviceClocks {
  public:
    /// A complete DeviceClock record.
    void add(const detail::LongRecord& head, const detail::DevicePlace& place);
    /// After the last add().
    void sort();
    /// The recorder's time for a device time. Between two readings it is interpolated; before the first and
    /// after the last one the nearest line continues for as long as it was, then the offset stays constant.
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
