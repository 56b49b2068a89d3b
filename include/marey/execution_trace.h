// execution_trace.h: the graph of ranges with their inputs and outputs, in the JSON schema of Chakra.
#pragma once

#include <memory>
#include <string>

#include <marey/detail/export.h>

namespace marey {

/// Writes a node for each range that begins, on any thread, while it runs: name, parent, inputs, outputs,
/// attributes. A node's `rf_id` is the range's `Record function id` in the Chrome trace of a session that
/// records beside it. One of these may exist at a time in a process. The file is JSON at any moment, however
/// the program ends; of the nodes, those of the last second may be missing then. A path that ends in ".gz" is
/// compressed by finish(); until then the text stands beside it.
///
/// Members may be called from any thread, but not from an observer's callback. A forked child writes nothing.
class MAREY_API ExecutionTrace {
  public:
    /// Throws marey::Error when the file cannot be made, or another one exists.
    explicit ExecutionTrace(const std::string& path);
    /// finish(), but a failure is a line on standard error.
    ~ExecutionTrace();
    ExecutionTrace(const ExecutionTrace&) = delete;
    ExecutionTrace& operator=(const ExecutionTrace&) = delete;

    /// Any number of times, with stop() between.
    void start();
    /// Ranges that are open then get their node when they end, or in finish().
    void stop();
    bool is_running() const noexcept;
    /// Stops and completes the file. Throws marey::Error when something could not be written. Twice is
    /// harmless.
    void finish();

  private:
    class Graph;
    static void finish_at_exit() noexcept;
    void finish_locked();  ///< finish() for whoever holds the lock
    void finish_or_warn() noexcept;

    std::unique_ptr<Graph> graph_;  ///< null: finished
};

/// What the environment asks for; docs/reference/environment.md has the variables.
struct ExecutionTraceRequest {
    bool is_wanted = false;
    std::string path;             ///< "": the caller chooses
    bool with_resources = false;  ///< a folder for what belongs to the trace
};
MAREY_API ExecutionTraceRequest execution_trace_request();

}  // namespace marey
