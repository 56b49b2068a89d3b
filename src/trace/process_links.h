// process_links.h: how the processes of a trace belong together.
#pragma once

#include <vector>

#include "trace/trace_data.h"

namespace marey {

/// Finds the parents of processes that have none yet, among the processes of the trace, and links the range
/// in which each of them was started to its first range, and the ranges that sent a message to those that
/// received it. Changes nothing where this was done before.
void connect_processes(TraceData& data);

/// The innermost range of a track that is open at a time; kNoRow: none.
Row range_open_at(const TraceData& data, const TrackInfo& track, std::int64_t time_ns);

/// Sorts links by `from`, as readers expect them.
void sort_links(std::vector<LinkInfo>& links);

/// Removes the ranges from event messages that the sender's own capture contains as well; the links from and
/// to them lead to the originals. Instants, counters and ranges without an original stay. `tracks`: those
/// that contain ranges from messages in the capture of another process.
void replace_remote_copies(TraceData& data, const std::vector<bool>& tracks);

}  // namespace marey
