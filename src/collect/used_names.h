// used_names.h: removes the names that only other sessions of the process used.
#pragma once

#include <cstddef>

#include "trace/trace_data.h"

namespace marey {

/// Removes sites without rows and unused strings, where there are many of them: a log also has the sites that
/// its process used before, and a file the names of all its sessions. The order is unchanged. `few`: how many
/// may stay; 0: none.
void drop_unused_names(TraceData& data, std::size_t few = 1024);

}  // namespace marey
