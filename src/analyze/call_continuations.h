// call_continuations.h: parts of suspended calls that are not counted as separate calls.
#pragma once

#include <vector>

#include <marey/trace.h>

namespace marey {

/// Returns all parts of suspended calls except the first part of each call. The first part is the one that
/// started the call or, if the trace does not contain it, the earliest. The result is unordered.
std::vector<Row> further_parts(const Trace& trace);

}  // namespace marey
