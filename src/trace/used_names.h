// used_names.h: removes the sites and strings of a trace to which nothing refers.
#pragma once

#include <cstddef>

#include "trace/trace_data.h"

namespace marey {

/// Removes sites without rows and unused strings, where there are many of them: a log also has the sites that
/// its process used before, and a file the names of all its sessions. The order is unchanged. `few`: how many
/// may stay; 0: none.
void drop_unused_names(TraceData& data, std::size_t few = 1024);

/// Removes unused strings. The order is unchanged.
void drop_unused_strings(TraceData& data);

}  // namespace marey
