// execution_trace.h: writes the graph of ranges with their inputs and outputs, in Chakra's JSON schema.
#pragma once

#include <memory>
#include <string>

#include <marey/detail/export.h>

namespace marey {

/// Writes a node for each range that begins on any thread while it is running: name, parent, inputs, outputs,
/// attributes. A node's `rf_id` is the range's `Record function id` in the Chrome trace of a session that
/// records at the same time. Only one may exist in a process at a time. The file is valid JSON at any moment,
/// even if the program crashes; then the nodes of the last second may be missing. If the path ends in ".gz",
/// finish() compresses the file; until then the text is in a separate file next to it.
///
/// Members may be called from any thread, but not from an observer's callback. A forked child writes nothing.
class MAREY_API ExecutionTrace {
  public:
    /// Creates the file. Throws marey::Error if that fails, or if another ExecutionTrace exists.
    explicit ExecutionTrace(const std::string& path);
    /// Calls finish(); a failure is printed on standard error.
    ~ExecutionTrace();

    /// Starts writing. May be called any number of times, with stop() in between.
    void start();
    /// Stops writing. Ranges that are still open get their node when they end, or in finish().
    void stop();
    bool is_running() const noexcept;
    /// Saves the elements of arrays that libraries pass to the trace in this folder, which must exist:
    /// `nid_4_tid_0.dat` has those of the first array of node 4.
    void save_elements_in(const std::string& folder);
    /// Stops and completes the file. Throws marey::Error if writing failed. Calling it twice is harmless.
    void finish();

  private:
    class Graph;
    static void finish_at_exit() noexcept;
    void finish_locked();  ///< finish() for callers that hold the lock
    void finish_or_warn() noexcept;

    std::unique_ptr<Graph> graph_;  ///< null: finished
};

/// The execution trace that the environment requests; docs/reference/environment.md describes the variables.
struct ExecutionTraceRequest {
    bool is_wanted = false;
    std::string path;             ///< empty: the caller chooses
    bool with_resources = false;  ///< create a folder for files that belong to the trace
};
/// Reads the request from Marey's variables. The Python package reads PyTorch's names for them too.
MAREY_API ExecutionTraceRequest execution_trace_request();

}  // namespace marey
