// used_names.h: removes the names that other sessions of the process brought.
#pragma once

#include "trace/trace_data.h"

namespace marey {

/// Removes sites without rows and unused strings, where there are many of them: a process keeps every name
/// that it has ever seen, and its later traces should not carry them all. The order is unchanged.
void drop_unused_names(TraceData& data);

}  // namespace marey
