// suspended_calls.h: calls of generators, coroutines and asynchronous generators, each with all its parts.
#pragma once

#include <cstdint>
#include <vector>

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// One call that ran in one or more parts and was suspended in between. Times are clipped to the window.
struct SuspendedCall {
    std::uint64_t number = 0;  ///< RangeDetail::call
    Row process = 0;
    Row first_part = kNoRow;  ///< the first part in the trace; its site is that of the call
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;        ///< end of the last part
    std::int64_t running_ns = 0;    ///< time of all parts, including their callees
    std::int64_t suspended_ns = 0;  ///< time between the parts
    std::uint32_t parts = 0;
    bool began_before = false;  ///< its first part is not in the trace
    bool is_finished = false;   ///< it returned or raised
    StringId task = 0;          ///< the name of the task in which it ran; 0: unknown
};

/// Returns the suspended calls of a trace, in order of their starts.
MAREY_API std::vector<SuspendedCall> suspended_calls(const Trace& trace);

/// A task of an event loop: its running time and its waiting time.
struct TaskTimes {
    std::uint64_t number = 0;  ///< number of its coroutine's call
    Row process = 0;
    StringId name = 0;
    StringId coroutine = 0;  ///< name of the coroutine function
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::int64_t run_ns = 0;
    std::int64_t await_ns = 0;
    std::uint32_t steps = 0;     ///< number of times it ran
    std::vector<Row> threads{};  ///< threads that it ran on, in order of its steps
    bool is_finished = false;
};

/// Returns the tasks of a trace, in order of their starts.
MAREY_API std::vector<TaskTimes> tasks(const Trace& trace);

/// Returns the trace with an added track for each task, named after it. The track contains the task from its
/// first step to its last (values: `run` and `await`, in nanoseconds) and, inside it, the calls that it
/// awaited, from their first part to their last. For display only: sums over it would count time twice. Tasks
/// of the same name share tracks if they do not overlap; after the first thousand, all tasks do.
MAREY_API Trace with_task_tracks(const Trace& trace);

/// Returns the trace with added arrows (LinkKind::Flow, named "next part") from each part of a suspended call
/// to the next: for the first thousand parts of a call, and at most 100,000 in total. For display only.
MAREY_API Trace with_part_flows(const Trace& trace);

}  // namespace marey
