// device_clocks.h: converts device times to the recorder's clock.
#pragma once

#include <algorithm>
#include <cmath>
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
    void add(const detail::LongRecord& head, const detail::DevicePlace& place) {
        const auto type = static_cast<DeviceType>(place.device_type);
        readings_[{type, place.device}].push_back(
            {head.time, static_cast<std::int64_t>(head.word2), head.depth});
    }
    /// After the last add().
    void sort() {
        for (auto& [device, readings] : readings_) {
            std::stable_sort(readings.begin(), readings.end(),
                             [](const Reading& a, const Reading& b) { return a.ticks < b.ticks; });
            const auto same = [](const Reading& a, const Reading& b) { return a.ticks == b.ticks; };
            readings.erase(std::unique(readings.begin(), readings.end(), same), readings.end());
        }
    }
    /// The recorder's time for a device time. Between two readings it is interpolated; before the first and
    /// after the last one the nearest line continues for as long as it was, then the offset stays constant.
    std::uint64_t correct(Device device, std::uint64_t ticks) const {
        const auto found = readings_.find({device.type, device.index});
        if (found == readings_.end()) return ticks;
        const std::vector<Reading>& readings = found->second;
        if (readings.size() == 1) return ticks + static_cast<std::uint64_t>(readings.front().offset);
        auto next =
            std::upper_bound(readings.begin(), readings.end(), ticks,
                             [](std::uint64_t time, const Reading& each) { return time < each.ticks; });
        next = std::clamp(next, readings.begin() + 1, readings.end() - 1);
        const Reading &from = *(next - 1), &to = *next;
        const auto length = static_cast<double>(to.ticks - from.ticks);
        const double along =
            std::clamp((static_cast<double>(ticks) - static_cast<double>(from.ticks)) / length, -1.0, 2.0);
        const double offset = static_cast<double>(from.offset) +
                              along * (static_cast<double>(to.offset) - static_cast<double>(from.offset));
        return ticks + static_cast<std::uint64_t>(std::llround(offset));
    }
    /// How often the clocks were read, and by how much times can be off: JSON. "": never.
    std::string report(double ticks_per_second) const {
        std::vector<double> errors;
        for (const auto& [device, readings] : readings_) {
            for (const Reading& reading : readings) errors.push_back(reading.error / ticks_per_second * 1e9);
        }
        if (errors.empty()) return "";
        std::sort(errors.begin(), errors.end());
        const auto whole = [](double ns) { return std::to_string(std::llround(ns)); };
        return "{\"readings\": " + std::to_string(errors.size()) +
               ", \"median_error_ns\": " + whole(errors[errors.size() / 2]) +
               ", \"worst_error_ns\": " + whole(errors.back()) + "}";
    }

  private:
    struct Reading {
        std::uint64_t ticks;
        std::int64_t offset;
        std::uint32_t error;
    };
    std::map<std::pair<DeviceType, std::int32_t>, std::vector<Reading>> readings_;
};

}  // namespace marey
