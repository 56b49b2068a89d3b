// device_calls.h: the host's calls into devices' libraries, put among the ranges of their threads.
#pragma once

#include "collect/thread_replay.h"
#include "collect/view.h"

namespace marey {

/// Puts `replay.device_calls` among the rows that replay_thread has left, which move to the front of the
/// slice by as many. A call is the child of the innermost range that contains its middle (of what lies in the
/// window), and is cut where that begins and ends; a call within a call is its child. In a view of one thread
/// and its tasks, calls of other threads count only within a range; those left out are erased from
/// `device_calls`.
void insert_device_calls(ThreadReplay& replay, const View& view, const RowSlice& slice);

}  // namespace marey
