// remote_events.h: the passes between event messages and the tables of a trace, both ways.
#pragma once

#include <cstdint>
#include <string>

#include <marey/remote.h>

#include "collect/arguments.h"
#include "collect/replayed_log.h"

namespace marey {

/// In `reserved` of a RemoteEventsRecord's head: the message's times are CLOCK_MONOTONIC_RAW of this host.
inline constexpr std::uint16_t kRemoteClockIsOurs = 1 << 0;

/// Keywords for values that the tables have no column for; events_of() turns them back into fields.
namespace remote_keys {
inline constexpr const char* kDevice = "device";
inline constexpr const char* kDeviceTime = "device_ns";
inline constexpr const char* kCpuMemory = "cpu_memory_bytes";
inline constexpr const char* kDeviceMemory = "device_memory_bytes";
inline constexpr const char* kStack = "stack";
}  // namespace remote_keys

/// "cuda:1", or "cuda" when the index is not known.
inline std::string device_text(Device device) {
    std::string text = device_type_name(device.type);
    if (device.index != -1) text += ":" + std::to_string(device.index);
    return text;
}

/// Appends the events of the journal's messages after everything that was recorded here: processes, threads,
/// tracks, ranges, points, values, details, links, problems. The local tables are complete by then.
void add_remote_events(ReplayedLog& state, StringPool& strings);

}  // namespace marey
