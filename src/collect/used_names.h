// used_names.h: a trace without the names that other sessions of its process brought.
#pragma once

#include "trace/trace_data.h"

namespace marey {

/// Leaves out sites that no row has and strings that nothing names, where there are many of them: a process
/// keeps every name that it has ever seen, and its later traces should not carry them all. The order stays.
void drop_unused_names(TraceData& data);

}  // namespace marey
