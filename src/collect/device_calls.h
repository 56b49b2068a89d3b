// device_calls.h: inserts the host's calls into device libraries among the ranges of their threads.
#pragma once

#include "collect/session_filter.h"
#include "collect/thread_replay.h"

namespace marey {

/// Inserts `replay.device_calls` among the rows that replay_thread has written, which move towards the front
/// of the slice by as many rows. A call is the child of the innermost range that contains its middle (of the
/// part in the window), and is cut where that range begins and ends; a call within a call is its child. In a
/// session of one thread and its tasks, calls of other threads count only within a range; the others are
/// erased from `device_calls`.
void insert_device_calls(ThreadReplay& replay, const SessionFilter& filter, const RowSlice& slice);

}  // namespace marey
