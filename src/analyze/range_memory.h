// range_memory.h: which range each allocation report happened in, and what ranges took and gave back.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <marey/trace.h>

namespace marey {

/// Bytes taken (positive) and given back (negative) in a range. Device memory is all that is not the
/// processor's.
struct RangeBytes {
    Row range = kNoRow;
    std::int64_t cpu_bytes = 0;
    std::int64_t device_bytes = 0;
    friend bool operator==(const RangeBytes&, const RangeBytes&) noexcept = default;
};

/// Where the reports of a trace belong.
struct RangeMemory {
    /// Per row of Trace::memory(): the innermost range of the report's own thread that was open then
    /// (InnermostRanges says what that means); kNoRow: none was. Async ranges own nothing.
    std::vector<Row> owner;
    /// Per range that owns reports, sorted by range: their sum, without what ranges inside it own. Refused
    /// allocations are in no sum.
    std::vector<RangeBytes> self;
};

/// Linear in reports; ranges between them are skipped.
RangeMemory range_memory(const Trace& trace);

/// As PyTorch has it: a range owns all that was reported from its start to its end by any thread, so that
/// several may own the same report; `self` is that without what the ranges directly inside it own, and
/// `owner` any range that has none around it. Of ranges of the processor that are not async.
RangeMemory range_memory_by_time(const Trace& trace);

/// Per range that owns reports or has a range inside it that does, sorted by range: the sum of all of them.
std::vector<RangeBytes> total_range_memory(const Trace& trace, std::span<const RangeBytes> self);

/// Whether it counts as the processor's memory.
inline bool is_cpu_memory(Device device) noexcept {
    return device.type == DeviceType::Cpu;
}

}  // namespace marey
