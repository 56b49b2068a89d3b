// live.h: looks at recorded programs while they run, or after they died, through their captures: the program
// takes no part in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// Which part of the log to read. The open ranges of all threads are always included.
struct NewestPart {
    std::size_t log_bytes = std::size_t{1} << 20;  ///< as recorded, of all threads together; 0: no limit
    std::int64_t last_ns = 0;                      ///< what ended in this time before the end; 0: no limit
};

/// Reads the newest part of a capture, at a cost that does not depend on the size of the file. Other files
/// are read as a whole. With `last_ns`, the window begins there;
/// otherwise it is that of the whole session, and earlier ranges are missing in it.
MAREY_API Trace load_newest(const std::string& path, const NewestPart& part = {});

/// Why a snapshot was taken, and what it is about.
struct SnapshotReason {
    std::string text{};         ///< "handle took 812 ms (limit 250ms)"; empty: nobody gave one
    std::int64_t begin_ns = 0;  ///< on the clock of the trace
    std::int64_t end_ns = 0;    ///< 0: it is about no certain time
    std::int64_t os_tid = 0;    ///< 0: about no single thread
};

/// Writes this part as a packed capture with the open ranges. `out` appears complete or not at all. Throws
/// marey::Error.
MAREY_API void write_snapshot(const std::string& path, const std::string& out, const NewestPart& part,
                              const SnapshotReason& reason = {});
/// The reason of the snapshot that the trace was loaded from.
MAREY_API std::optional<SnapshotReason> snapshot_reason(const Trace& trace);

/// A process that is being recorded.
struct RecordedProcess {
    std::int64_t pid = 0;
    std::string capture;  ///< the path of the file that it writes
};
/// Finds the recorded processes of this user, by the files that they have mapped; empty `pid`: all, in order
/// of their ids.
MAREY_API std::vector<RecordedProcess> recorded_processes(std::int64_t pid = 0);

}  // namespace marey
