// device_tracks.h: the tracks of devices, and arrows from the calls that launched their work.
#pragma once

#include <cstdint>

#include "collect/arguments.h"
#include "collect/replayed_log.h"
#include "trace/string_pool.h"

namespace kymo {

/// What could not be said of the work of devices.
struct DeviceFindings {
    std::uint64_t without_call = 0;  ///< work whose launch is not in the log
};

/// Appends a track for each queue of `state.device_work`, in order of device and queue, with a row of the
/// thread table each; work that overlaps goes to further tracks. Waits and overhead go to async tracks beside
/// them. Calls get their own values. The ranges of the host must be complete.
DeviceFindings add_device_tracks(ReplayedLog& state, StringPool& strings, ArgumentDecoder& arguments);

/// Names of devices' sites become readable where they are symbols of C++.
void name_device_sites(TraceData& data, StringPool& strings);

}  // namespace kymo
