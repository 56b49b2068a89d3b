// process_end.h: how the process of a capture ended, and what it was doing then.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// How a process ended, as its parent learns it.
struct ProcessEnd {
    int exit_code = 0;
    int signal = 0;  ///< that killed the process; 0: it exited
};

/// Appends how its process ended to a capture, after the process has ended. Returns false, and changes
/// nothing, if the capture belongs to another process. Throws marey::Error if the file cannot be read or
/// written.
MAREY_API bool append_process_end(const std::string& capture, std::int64_t pid, const ProcessEnd& end);

/// Returns how the process ended; empty if nothing appended it (`marey run` does).
MAREY_API std::optional<ProcessEnd> process_end(const Trace& trace);

/// The ranges that were open on a thread when the recording ended.
struct OpenStack {
    Row thread;
    std::vector<Row> ranges;  ///< innermost first; not empty
};
/// Returns the open stacks of all threads that have one, in the order of the threads.
MAREY_API std::vector<OpenStack> open_stacks(const Trace& trace);

}  // namespace marey
