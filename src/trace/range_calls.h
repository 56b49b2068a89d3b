// range_calls.h: how many calls a range stands for.
#pragma once

#include <cstdint>

#include <marey/trace.h>

namespace marey {

/// 1 for a recorded call; imported sums of calls have their number in RangeDetail::calls. The parts of a
/// suspended call are counted by their flags.
inline std::uint64_t calls_of(const Trace& trace, const RangeColumns& ranges, Row row) noexcept {
    if ((ranges.flags[row] & kSampled) == 0) return 1;
    const RangeDetail* const detail = trace.range_detail(row);
    return detail == nullptr ? 1 : detail->calls;
}

}  // namespace marey
