// self_times.h: the self time of ranges, from their times and parents.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/trace_data.h"

namespace marey {

/// For each range, the part of its duration in the window that no child covers. Sums wrap around; any times
/// are safe. Parents must be rows of the table or kNoRow.
std::vector<std::int64_t> self_times(const TraceData& data);

}  // namespace marey
