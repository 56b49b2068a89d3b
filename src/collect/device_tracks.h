// device_tracks.h: device tracks, and arrows from the calls that launched their work.
#pragma once

#include <cstdint>

#include "collect/arguments.h"
#include "collect/replayed_log.h"
#include "trace/string_pool.h"

namespace marey {

/// Counts of incomplete information about device work.
struct DeviceFindings {
    std::uint64_t without_call = 0;  ///< work whose launch is not in the log
};

/// Appends a track for each queue of `state.device_work`, in order of device and queue, with a row of the
/// thread table each; work that overlaps goes to additional tracks. Waits and overhead go to async tracks
/// beside them. The ranges of the host must be complete.
DeviceFindings add_device_tracks(ReplayedLog& state, StringPool& strings, ArgumentDecoder& arguments);

/// Adds the values of host calls: the number of their function in its library, the correlation, and the error
/// that they returned.
class DeviceCallValues {
  public:
    DeviceCallValues(TraceData& data, StringPool& strings);
    /// Rows in ascending order.
    void add(const DeviceCallRow& call, Row row);

  private:
    TraceData& data_;
    StringId number_key_;
    StringId correlation_key_;
    StringId error_key_;
};

/// Demangles the names of device sites that are C++ symbols.
void name_device_sites(TraceData& data, StringPool& strings);

}  // namespace marey
