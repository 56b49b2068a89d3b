// load.h: reads a capture while another thread watches.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include <marey/detail/export.h>
#include <marey/progress.h>
#include <marey/trace.h>

namespace marey {

/// How far a capture has been read.
struct LoadProgress : WorkProgress {
    /// Called once on the reading thread, before the events are read, with a trace that has only processes,
    /// threads and the window. May be null; must not throw.
    std::function<void(const Trace& outline)> on_outline{};
};

/// Reads a file like Trace::load(). Saved traces have no progress.
MAREY_API Trace load_trace(const std::string& path, LoadProgress& progress);

/// The limits of a TraceCache.
struct CacheLimits {
    std::uint64_t least_ranges = 20'000'000;  ///< smaller traces are quick to read
    std::uint64_t most_bytes = std::uint64_t{8}
                               << 30;  ///< of all files; the one not used for longest goes first
};

/// Large traces as files that can be mapped instead of read, in $XDG_CACHE_HOME/marey (or ~/.cache/marey),
/// with mode 0600. Failures only mean that nothing is kept. For one thread, except where noted.
class MAREY_API TraceCache {
  public:
    /// `path` and `format` are those of open_trace().
    explicit TraceCache(std::string path, std::string format = {}, const CacheLimits& limits = {});
    /// Abandons a file that is still being written.
    ~TraceCache();

    /// Returns the trace if it was kept since the file was last changed. Its ranges are in the mapped file;
    /// saving or joining it copies them.
    std::optional<Trace> find();
    /// Starts to write a large and finished trace to the cache, on another thread. `trace` is the trace of
    /// the file as it was when find() was called last.
    void keep(const Trace& trace);
    /// Waits until the file is written.
    void wait();

  private:
    std::string path_;
    std::string format_;
    CacheLimits limits_;
    std::string key_;  ///< describes the file as find() saw it; empty: not known
    std::thread writer_;
    std::atomic<bool> is_cancelled_{false};
};

}  // namespace marey
