// call_continuations.h: of calls that were suspended, the parts that are no calls of their own.
#pragma once

#include <vector>

#include <marey/trace.h>

namespace marey {

/// The rows of all parts of suspended calls but the first of each call: the one that it began with or, where
/// that is not in the trace, the earliest. In no order.
std::vector<Row> further_parts(const Trace& trace);

}  // namespace marey
