// suspended_calls.h: calls of generators, coroutines and asynchronous generators, each with all of its parts.
#pragma once

#include <cstdint>
#include <vector>

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// One call that ran in one or more parts and was suspended between them. Times within the window.
struct SuspendedCall {
    std::uint64_t number = 0;  ///< RangeDetail::call
    Row process = 0;
    Row first_part = kNoRow;  ///< the first part in the trace; its site is the call's
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;        ///< of the last part
    std::int64_t running_ns = 0;    ///< of all parts, what they called included
    std::int64_t suspended_ns = 0;  ///< between the parts
    std::uint32_t parts = 0;
    bool began_before = false;  ///< its first part is not in the trace
    bool is_finished = false;   ///< it returned or raised
    StringId task = 0;          ///< the name of the task in which it ran; 0: none is known
};

/// In order of their starts.
MAREY_API std::vector<SuspendedCall> suspended_calls(const Trace& trace);

/// A task of an event loop: what it ran and how long it waited.
struct TaskTimes {
    std::uint64_t number = 0;  ///< of the call of its coroutine
    Row process = 0;
    StringId name = 0;
    StringId coroutine = 0;  ///< name of the function
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::int64_t run_ns = 0;
    std::int64_t await_ns = 0;
    std::uint32_t steps = 0;   ///< how often it ran
    std::vector<Row> threads;  ///< where, in order of its steps
    bool is_finished = false;
};

/// In order of their starts.
MAREY_API std::vector<TaskTimes> tasks(const Trace& trace);

/// The same trace with a track for each task, named after it, that holds the task from its first step to its
/// last (values: `run` and `await`, in nanoseconds) and in it the calls that it awaited, from their first
/// parts to their last. For showing only: sums over it would count twice. Tasks of one name share tracks
/// where they do not overlap; beyond the first thousand all do.
MAREY_API Trace with_task_tracks(const Trace& trace);

/// The same trace with arrows (LinkKind::Flow, named "next part") from each part of a suspended call to the
/// next: for the first thousand parts of a call, and no more than 100,000 in all. For showing only.
MAREY_API Trace with_part_flows(const Trace& trace);

}  // namespace marey
