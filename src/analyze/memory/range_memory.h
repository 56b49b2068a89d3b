// range_memory.h: the range of each allocation report, and the memory that ranges allocated and freed.
#pragma once

#include <marey/trace.h>

namespace marey {

/// Bytes allocated (positive) and freed (negative) in a range. Everything except CPU memory is device memory.
struct RangeBytes {
    Row range = kNoRow;
    std::int64_t cpu_bytes = 0;
    std::int64_t device_bytes = 0;
    friend bool operator==(const RangeBytes&, const RangeBytes&) noexcept = default;
};

/// The ranges that own the reports of a trace.
struct RangeMemory {
    /// Per row of Trace::memory(): the innermost open range on the report's thread at that time (see
    /// InnermostRanges); kNoRow: none. Async ranges own nothing.
    std::vector<Row> owner;
    /// Per range that owns reports, sorted by range: their sum, without the ranges inside it. Failed
    /// allocations are not counted.
    std::vector<RangeBytes> self;
};

/// Linear in the number of reports; ranges between them are skipped.
RangeMemory range_memory(const Trace& trace);

/// Follows PyTorch: a range owns every report of any thread from its start to its end, so several ranges may
/// own the same report. `self` excludes what the ranges directly inside own, and `owner` is any range without
/// a parent. Considers only CPU ranges that are not async.
RangeMemory range_memory_by_time(const Trace& trace);

/// Per range, in the given order: what all threads allocated and freed while it ran, as PyTorch counts.
std::vector<RangeBytes> memory_during(const Trace& trace, std::span<const Row> rows);

/// Per range that owns reports, directly or through ranges inside it, sorted by range: the sum of all of
/// them.
std::vector<RangeBytes> total_range_memory(const Trace& trace, std::span<const RangeBytes> self);

/// Whether it counts as CPU memory.
inline bool is_cpu_memory(Device device) noexcept {
    return device.type == DeviceType::Cpu;
}

}  // namespace marey
