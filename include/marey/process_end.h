// process_end.h: how the process of a capture ended, and what it was doing then.
#pragma once

#include <cstdint>
#include <memory>
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

/// A process of a tree that is being recorded.
struct WatchedProcess {
    bool is_known = false;            ///< it has reported that it writes the capture
    bool is_running = false;          ///< or has ended a moment ago; false: unknown, or ended
    bool has_ended = false;           ///< and nothing more will become known about its end
    std::optional<ProcessEnd> end{};  ///< empty: it runs, or how it ended is unknown
};

/// A process of a tree that could not create its capture.
struct UnrecordedProcess {
    std::int64_t pid = 0;
    std::uint64_t start = 0;  ///< as in ProcessInfo
    std::string reason;
    std::string executable;
    std::string command_line;  ///< words with a blank between them; cut if it is long
};
/// Names the processes and the reasons, one sentence for all of a program with the same reason.
MAREY_API std::vector<ProblemInfo> describe_unrecorded(const std::vector<UnrecordedProcess>& processes);

/// Appends problems of its run to a capture, after its process has ended. Returns and throws as
/// append_process_end().
MAREY_API bool append_problems(const std::string& capture, std::int64_t pid,
                               const std::vector<ProblemInfo>& problems);

/// Learns how the processes of a tree end, whoever their parents are. Every recorded process reports itself
/// when it begins. Linux 6.15 and later then tell how any of them ended. Earlier kernels tell only the
/// parent: there, the end is known if the parent is a recorded Python program that waits for it, or if nobody
/// has waited for it when update() is called. Not thread-safe.
class MAREY_API ProcessWatch {
  public:
    /// Create it before the first process of the tree starts. If no socket can be created, it knows nothing.
    explicit ProcessWatch(const std::string& tree);
    ~ProcessWatch();

    /// Takes in all that has happened until now. Raises this process's limit of open files.
    void update();
    /// The process that writes a capture, as of the last update().
    WatchedProcess find(const std::string& capture) const;
    /// The processes that have reported that they are not recorded, as of the last update().
    std::vector<UnrecordedProcess> unrecorded() const;

  private:
    class Processes;
    std::unique_ptr<Processes> processes_;
};

/// Returns how the process ended; empty if nothing appended it (`marey run` does).
MAREY_API std::optional<ProcessEnd> process_end(const Trace& trace);

/// "SIGSEGV"; "signal 65" if it has no name.
MAREY_API std::string signal_name(int signal);

/// The innermost range that was open when the process ended, on the first of its threads that had one;
/// kNoRow: none.
MAREY_API Row innermost_open_range(const Trace& trace, Row process);

/// A process that ended without closing its capture.
struct EndedProcess {
    std::int64_t pid = 0;
    std::string program;
    std::int32_t exit_code = -1;    ///< as in ProcessInfo
    std::int32_t exit_signal = -1;  ///< as in ProcessInfo
    std::string open_range;         ///< the innermost one; empty: none
};
MAREY_API EndedProcess ended_process(const Trace& trace, Row process);

/// Names processes and how they ended, one sentence for all that ended the same way in the same range. A
/// process that exited with code 0 wanted to end like that, and is left out.
MAREY_API std::vector<ProblemInfo> describe_ends(const std::vector<EndedProcess>& processes);

/// The ranges that were open on a thread when the recording ended.
struct OpenStack {
    Row thread;
    std::vector<Row> ranges;  ///< innermost first; not empty
};
/// Returns the open stacks of all threads that have one, in the order of the threads.
MAREY_API std::vector<OpenStack> open_stacks(const Trace& trace);

}  // namespace marey
