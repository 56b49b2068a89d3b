// now.h: what a program is doing, or was doing when its recording ended.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// A range that is open at the end of a trace.
struct OpenNow {
    Row range = kNoRow;
    std::int64_t open_ns = 0;
    /// Median time of the finished ranges with this name in the trace. Numbers after "#" do not count as part
    /// of a name; empty: there are none.
    std::optional<std::int64_t> usual_ns{};
    bool is_waiting = false;  ///< a known wait (marey/known_waits.h)
};

/// The open ranges of a thread.
struct ThreadNow {
    Row thread = kNoRow;
    std::vector<OpenNow> ranges;  ///< innermost first; not empty
};

/// A task of an event loop that waits.
struct TaskNow {
    StringId name = 0;
    StringId coroutine = 0;         ///< name of its coroutine function
    StringId awaits = 0;            ///< name of the innermost coroutine in it; 0: itself
    std::int64_t suspended_ns = 0;  ///< since it ran last
};

/// A device that the process gave work to.
struct DeviceNow {
    Device device{};
    Row last = kNoRow;         ///< its newest work
    std::int64_t idle_ns = 0;  ///< since that ended
};

enum class ProcessState : std::uint8_t {
    Running,   ///< it is being recorded
    Finished,  ///< the recording was stopped, or the process exited
    Exited,    ///< without closing its capture, or with an exit code other than 0
    Killed,    ///< by a signal
    Ended,     ///< without closing its capture; nothing else is known
};

struct ProcessNow {
    Row process = kNoRow;
    ProcessState state = ProcessState::Finished;
    std::int32_t exit_code = -1;       ///< as in ProcessInfo
    std::int32_t exit_signal = -1;     ///< as in ProcessInfo
    std::int64_t end_ns = 0;           ///< now, or its last time
    std::int64_t last_ns = 0;          ///< the last end of a range; 0: none
    std::vector<ThreadNow> threads{};  ///< those with an open range
    std::uint64_t other_threads = 0;   ///< those that live and have none
    std::vector<TaskNow> tasks{};      ///< that wait, longest first, as far as the trace has their steps
    std::vector<DeviceNow> devices{};
    /// Calls that launched device work after the newest work: that has not ended, or its driver has not
    /// reported it yet.
    std::uint64_t in_flight = 0;
};

/// Returns all processes of a trace, which is usually that of a capture that is still being written (as
/// load.h and live.h read it), in the order of the trace.
MAREY_API std::vector<ProcessNow> now(const Trace& trace);

}  // namespace marey
