// memory_use.h: what allocation reports say: how much was held, when most, and who took it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// How much memory is held from a time on.
struct MemoryPoint {
    std::int64_t time_ns = 0;
    std::int64_t allocated = 0;
    std::int64_t reserved = 0;  ///< by the allocator, of the system; 0 where it does not say
};

/// The memory of one device as it was over time. A processor's memory is one device per process.
struct MemorySeries {
    Row process = 0;
    Device device{};
    /// The allocator's own totals. Without them `allocated` is the sum of what was reported; memory that was
    /// given back in the window but taken before it counts from the start on.
    bool has_totals = false;
    std::vector<MemoryPoint> points;  ///< in order of time, one for each report that is no refusal
};

/// Counters for every device that has reports, in order of process and device. n log n in reports.
MAREY_API std::vector<MemorySeries> memory_series(const Trace& trace);

/// The reports that belong to ranges with the same names from the root down (with by_name: of the same name).
struct MemoryHolder {
    std::vector<std::string> path;           ///< the outermost range first; empty: outside of all ranges
    std::uint64_t allocations = 0;           ///< made in these ranges, and in no range inside them
    std::int64_t allocated_bytes = 0;        ///< by them
    std::int64_t total_allocated_bytes = 0;  ///< the ranges inside included
    std::int64_t freed_bytes = 0;            ///< given back in these ranges, whoever took it
    std::uint64_t peak_allocations = 0;      ///< of `allocations`, held at the peak
    std::int64_t peak_bytes = 0;
    std::uint64_t kept_allocations = 0;  ///< of `allocations`, not given back in the window
    std::int64_t kept_bytes = 0;
};

/// An allocation that was refused.
struct OutOfMemoryEvent {
    std::int64_t time_ns = 0;
    Row thread = kNoRow;
    std::int64_t asked_bytes = 0;
    std::int64_t allocated = 0;  ///< then, as MemoryPoint
    std::int64_t reserved = 0;
    std::vector<std::string> path;  ///< of the range that asked
};

struct DeviceMemory {
    Row process = 0;
    Device device{};
    bool has_totals = false;  ///< as MemorySeries
    std::uint64_t allocations = 0;
    std::int64_t allocated_bytes = 0;
    std::uint64_t frees = 0;
    std::int64_t freed_bytes = 0;
    std::int64_t start_bytes = 0;  ///< held before the first report
    std::int64_t end_bytes = 0;    ///< held after the last one
    std::int64_t peak_bytes = 0;   ///< the most that was ever held
    std::int64_t peak_time_ns = 0;
    std::int64_t peak_reserved = 0;       ///< the most that was ever reserved
    std::int64_t peak_unknown_bytes = 0;  ///< of peak_bytes, what no allocation of the window accounts for
    std::uint64_t kept_allocations = 0;   ///< made in the window and not given back in it
    std::int64_t kept_bytes = 0;
    std::uint64_t earlier_frees = 0;  ///< of memory that was taken before the window
    std::int64_t earlier_bytes = 0;
    std::uint64_t unseen_frees = 0;     ///< addresses that were given out twice without a free between
    std::vector<MemoryHolder> holders;  ///< the most bytes at the peak first, then the most taken
    std::vector<OutOfMemoryEvent> refusals;
};

struct MemoryUseOptions {
    bool by_name = false;  ///< one holder per name of the innermost range, not one per path
};

struct MemoryUse {
    std::vector<DeviceMemory> devices;  ///< in order of process and device
};

/// n log n in reports.
MAREY_API MemoryUse memory_use(const Trace& trace, const MemoryUseOptions& options = {});

}  // namespace marey
