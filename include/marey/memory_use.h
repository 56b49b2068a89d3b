// memory_use.h: memory use from allocation reports: how much was held, the peak, and what allocated it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// The memory held from a point in time on.
struct MemoryPoint {
    std::int64_t time_ns = 0;
    std::int64_t allocated = 0;
    std::int64_t reserved = 0;  ///< reserved by the allocator from the system; 0: unknown
};

/// The memory of one device over time. CPU memory counts as one device per process.
struct MemorySeries {
    Row process = 0;
    Device device{};
    /// Whether the allocator reported totals. Without them, `allocated` is the sum of the reports, and memory
    /// that was freed in the window but allocated before it counts from the start.
    bool has_totals = false;
    std::vector<MemoryPoint> points;  ///< in order of time, one for each report except refusals
};

/// Returns the memory over time for every device with reports, in order of process and device. Takes
/// O(n log n) in reports.
MAREY_API std::vector<MemorySeries> memory_series(const Trace& trace);

/// The memory allocated by ranges with the same path of names (with by_name: the same name).
struct MemoryHolder {
    std::vector<std::string> path;           ///< outermost range first; empty: outside any range
    std::uint64_t allocations = 0;           ///< made in these ranges, excluding the ranges inside them
    std::int64_t allocated_bytes = 0;        ///< size of those allocations
    std::int64_t total_allocated_bytes = 0;  ///< including the ranges inside them
    std::int64_t freed_bytes = 0;            ///< freed in these ranges, wherever it was allocated
    std::uint64_t peak_allocations = 0;      ///< part of `allocations` held at the peak
    std::int64_t peak_bytes = 0;
    std::uint64_t kept_allocations = 0;  ///< part of `allocations` not freed in the window
    std::int64_t kept_bytes = 0;
};

/// An allocation that was refused.
struct OutOfMemoryEvent {
    std::int64_t time_ns = 0;
    Row thread = kNoRow;
    std::int64_t asked_bytes = 0;
    std::int64_t allocated = 0;  ///< held at that time, as in MemoryPoint
    std::int64_t reserved = 0;
    std::vector<std::string> path;  ///< of the range that requested the memory
};

/// The memory use of one device.
struct DeviceMemory {
    Row process = 0;
    Device device{};
    bool has_totals = false;  ///< as in MemorySeries
    std::uint64_t allocations = 0;
    std::int64_t allocated_bytes = 0;
    std::uint64_t frees = 0;
    std::int64_t freed_bytes = 0;
    std::int64_t start_bytes = 0;  ///< held before the first report
    std::int64_t end_bytes = 0;    ///< held after the last report
    std::int64_t peak_bytes = 0;   ///< the most bytes held at any time
    std::int64_t peak_time_ns = 0;
    std::int64_t peak_reserved = 0;       ///< the most bytes reserved at any time
    std::int64_t peak_unknown_bytes = 0;  ///< part of peak_bytes not explained by allocations in the window
    std::uint64_t kept_allocations = 0;   ///< made in the window and not freed in it
    std::int64_t kept_bytes = 0;
    std::uint64_t earlier_frees = 0;  ///< frees of memory that was allocated before the window
    std::int64_t earlier_bytes = 0;
    std::uint64_t unseen_frees = 0;     ///< addresses allocated twice without a free in between
    std::vector<MemoryHolder> holders;  ///< most bytes at the peak first, then most allocated
    std::vector<OutOfMemoryEvent> refusals;
};

/// Options of memory_use().
struct MemoryUseOptions {
    bool by_name = false;  ///< one holder per name of the innermost range instead of one per path
};

/// The result of memory_use().
struct MemoryUse {
    std::vector<DeviceMemory> devices;  ///< in order of process and device
};

/// Analyses the allocation reports of a trace. Takes O(n log n) in reports.
MAREY_API MemoryUse memory_use(const Trace& trace, const MemoryUseOptions& options = {});

}  // namespace marey
