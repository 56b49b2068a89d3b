// process_links.h: how the processes of a trace belong together.
#pragma once

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

}  // namespace marey
