// trace_damage.h: checks that tables are consistent, so that all later code may rely on them.
#pragma once

#include <string>

#include "trace/trace_data.h"

namespace marey {

/// Empty when every row that a table refers to exists, columns have equal lengths, sorted columns are sorted,
/// tracks cover all ranges without a gap, ranges are in pre-order with parents before their children, lists
/// do not nest without end, times are within +-2^62 ns, and metadata is JSON. Else the first inconsistency,
/// in a few words.
std::string find_damage(const TraceData& data);

}  // namespace marey
