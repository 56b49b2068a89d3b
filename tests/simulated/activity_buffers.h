// activity_buffers.h: the buffers through which records arrive from the device: late, and limited in number.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <marey/device.h>

#include "simulated/device_clock.h"
#include "simulated/machine.h"
#include "simulated/settings.h"

namespace marey::simulated {

inline constexpr DeviceType kType = DeviceType::Other;

/// Work as reported by the device, in times of the device's clock.
struct WorkRecord {
    Job job;
    double start_ns = 0;
    double end_ns = 0;
};
struct CallRecord {
    const char* name;  ///< never freed
    bool is_driver = false;
    std::int32_t os_tid = 0;
    std::uint32_t correlation = 0;
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::int32_t result = 0;
};
struct MemoryRecord {
    MemoryReport report;
    std::uint64_t ticks = 0;
};
using Record = std::variant<WorkRecord, CallRecord, MemoryRecord>;

/// Not thread-safe.
class ActivityBuffers {
  public:
    /// False: the record was lost because no buffer was free.
    bool add(Record record, const Settings& settings);
    /// Whether there are full buffers to deliver.
    bool has_full() const noexcept { return !full_.empty(); }
    /// Writes the full buffers, or everything, into the log.
    void deliver_records(bool everything, DeviceLog& log, const ClockRelation& relation,
                         const Settings& settings);
    std::uint64_t lost() const noexcept { return lost_; }
    /// Discards the contents; the count of lost records stays.
    void forget();

  private:
    using Buffer = std::vector<Record>;
    void write(const Record& record, DeviceLog& log, const ClockRelation& relation);
    std::uint32_t site_of(DeviceWorkKind kind, const std::string& name);

    Buffer current_;
    std::deque<Buffer> full_;
    std::uint64_t lost_ = 0;
    std::uint64_t unreported_ = 0;  ///< lost records that were not reported yet
    std::map<std::pair<DeviceWorkKind, std::string>, std::uint32_t> sites_;
    std::mt19937 random_{1};
};

}  // namespace marey::simulated
