// device_records.h: device records in logs: work, and the host's calls that launched it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <marey/device.h>

#include "collect/log_scan.h"
#include "collect/session_filter.h"
#include "collect/thread_replay.h"

namespace marey {

struct ReplayedLog;

/// Work of a device that passes the filter. Points into the log.
struct DeviceWorkRow {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::uint32_t site = 0;  ///< a row
    std::uint32_t correlation = 0;
    std::uint32_t log = 0;  ///< the log that it is in: correlations are unique within a log
    std::int64_t stream = -1;
    Device device{};
    DeviceWorkKind kind = DeviceWorkKind::Kernel;
    std::uint32_t context = 0;
    bool runs_on = false;                  ///< it continued after the window, whose end is `end_ns`
    std::span<const std::byte> payload{};  ///< whole for its kind
};

/// The values after the fixed part of its payload.
std::span<const std::byte> values_of(const DeviceWorkRow& work) noexcept;

/// Finds the device records that the session needs: work for `device_work`, calls for the replays of their
/// threads. A thread that recorded nothing itself gets a replay.
void read_device_records(ReplayedLog& state);

/// Inserts `replay.device_calls` among the rows that replay_thread has written, which move towards the front
/// of the slice by as many rows. A call is the child of the innermost range that contains its middle (of the
/// part in the window), and is cut where that range begins and ends; a call within a call is its child. In a
/// session of one thread and its tasks, calls of other threads count only within a range; the others are
/// erased from `device_calls`.
void insert_device_calls(ThreadReplay& replay, const SessionFilter& filter, const RowSlice& slice);

}  // namespace marey
