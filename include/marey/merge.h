// merge.h: traces and captures of several processes as one trace on one clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// Merges traces of several processes, given in any order; their windows may overlap. Processes learn their
/// parents, and links show where they were started and which messages they sent one another. A process that
/// is in several traces is one process; its traces must follow one another. The clocks of several hosts are
/// fitted (marey/host_clocks.h); Trace::host_clocks() has the errors, and the trace's problems name hosts
/// that only their wall clocks place. Pass the only references to the traces: then their memory is freed one
/// by one. Throws marey::Error if there are more rows than a trace can hold.
MAREY_API Trace merge_traces(std::vector<Trace> traces);

/// Returns the rows of some processes. `processes`: rows of Trace::processes(); the rest keeps its order.
MAREY_API Trace select_processes(const Trace& trace, const std::vector<Row>& processes);

/// The program that a process runs: the script or module of a Python interpreter, otherwise the file name.
MAREY_API std::string program_name(const Trace& trace, const ProcessInfo& process);
/// The same of a process that is in no trace. `command_line`: words with a blank between them.
MAREY_API std::string program_name(std::string_view executable, std::string_view command_line);

/// Identifies the run that a file belongs to.
struct CaptureOrigin {
    std::string tree;  ///< as in ProcessInfo; empty: unknown
    std::int64_t pid = 0;
    std::int64_t node = -1;  ///< rank
};
/// Throws marey::Error if the file is neither a capture nor a saved trace.
MAREY_API CaptureOrigin capture_origin(const std::string& path);

/// A file that was not merged.
struct LeftOutFile {
    std::string path;
    std::string reason;
};

struct MergedCaptures {
    Trace trace;
    std::vector<LeftOutFile> left_out;
};

struct MergeOptions {
    bool any_tree = false;      ///< merge files of different runs too
    bool for_averages = false;  ///< as Trace::load_for_averages
    std::uint64_t session =
        0;  ///< of each process that has it; 0: its first, or the longest of several files
};

/// Reads captures and saved traces and merges them. Captures of one boot share one clock fit. A file that is
/// given twice or cannot be read is left out, and so is a session that ran during a longer one of the same
/// process: the trace's problems name them. Throws marey::Error if no file is left, or if the files are of
/// different runs (unless they are all ranks).
MAREY_API MergedCaptures load_merged(const std::vector<std::string>& paths, const MergeOptions& options = {});

/// One size limit for the processes of a tree: creates the page in which they add up the sizes of their logs.
/// False: it cannot be created, and the limit counts for each process separately.
MAREY_API bool create_run_ledger(const std::string& tree, std::uint64_t max_bytes) noexcept;
MAREY_API void remove_run_ledger(const std::string& tree) noexcept;

/// The result of RunPacker::finish().
struct PackedTree {
    std::size_t processes = 0;      ///< in the file
    std::size_t empty = 0;          ///< captures that had no records, and were removed
    std::vector<LeftOutFile> kept;  ///< captures that stay beside the file, and why
};

/// Packs the captures of a run into one file, which Trace::load() reads as one trace, and removes them. What
/// is packed while the run goes on is in a file beside it ("app.packed.marey" for "app.marey"), which is a
/// part of the run too: nothing is lost at any time. Not thread-safe.
class MAREY_API RunPacker {
  public:
    /// `output`: the file of the run. Until finish(), it is the capture of the run's first process.
    explicit RunPacker(std::string output) : output_(std::move(output)) {}
    ~RunPacker();
    RunPacker(const RunPacker&) = delete;
    RunPacker& operator=(const RunPacker&) = delete;

    /// Packs a capture whose process has ended, and removes it. Throws marey::Error if that is not possible;
    /// then the capture stays.
    void pack(const std::string& capture);
    /// The number of captures that pack() has removed.
    std::size_t packed() const noexcept { return result_.processes + result_.empty; }
    /// Packs the other captures too, that of the run's first process first. `output` may be one of them, and
    /// appears complete or not at all; if its process still runs, or it cannot be packed, its capture gets
    /// another name ("app.PID.marey"). `is_running`: whether the process of a capture is known to run, also
    /// where its number means another process here. Throws marey::Error if the file cannot be written; then
    /// every capture stays.
    PackedTree finish(const std::vector<std::string>& captures,
                      const std::function<bool(const std::string&)>& is_running = {});

  private:
    void append(const std::vector<std::byte>& bytes);

    std::string output_;
    std::string beside_;        ///< the file with what is packed so far; empty: none
    int file_ = -1;             ///< `beside_`
    std::uint64_t length_ = 0;  ///< of its complete parts
    PackedTree result_;
};

}  // namespace marey
