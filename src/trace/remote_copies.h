// remote_copies.h: events that a process sent to its caller, where its own capture is there too.
#pragma once

#include <vector>

#include "trace/trace_data.h"

namespace marey {

/// Removes the ranges from event messages that the sender's own capture contains as well; the links from and
/// to them lead to the originals. Instants, counters and ranges without an original stay. `tracks`: those
/// that contain ranges from messages in the capture of another process.
void replace_remote_copies(TraceData& data, const std::vector<bool>& tracks);

}  // namespace marey
