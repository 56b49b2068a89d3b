// trace_damage.h: whether tables hold together, so that everybody downstream may believe them.
#pragma once

#include <string>

#include "trace/trace_data.h"

namespace marey {

/// Empty when every row that a table names exists, columns are of equal length, what is sorted is sorted,
/// tracks hold all ranges without a gap, ranges stand in pre-order with parents before their children, lists
/// nest without end nowhere, times are within +-2^62 ns, and metadata is JSON. Else what is wrong, in a few
/// words.
std::string find_damage(const TraceData& data);

}  // namespace marey
