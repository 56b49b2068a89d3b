// part_flags.h: flags that mark the parts of suspended calls, and how many calls a range stands for.
#pragma once

#include <marey/trace.h>

#include "trace/trace_data.h"

namespace marey {

/// A range that is part of a suspended call.
struct CallPart {
    std::uint64_t call = 0;  ///< its number in its process
    Row row = 0;
    std::uint32_t flags : 8 = 0;  ///< PartFlags
    std::uint32_t process : 24 = 0;
};

/// Sets kPart for all parts, and kFurtherPart for all parts of a call except the first one in the trace. The
/// columns must be complete.
void mark_parts(TraceData& data, std::span<const CallPart> parts);
/// The same for the parts in the trace's details.
void mark_parts(TraceData& data);

/// 1 for a recorded call; imported sums of calls have their number in RangeDetail::calls. The parts of a
/// suspended call are counted by their flags.
inline std::uint64_t calls_of(const Trace& trace, const RangeColumns& ranges, Row row) noexcept {
    if ((ranges.flags[row] & kSampled) == 0) return 1;
    const RangeDetail* const detail = trace.range_detail(row);
    return detail == nullptr ? 1 : detail->calls;
}

}  // namespace marey
