// load.h: reads a capture while another thread watches.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// How far a capture has been read. Any thread may read the numbers.
struct LoadProgress {
    std::atomic<std::uint64_t> done{0};
    std::atomic<std::uint64_t> total{0};  ///< in the unit of `done`; 0: not known yet
    /// Called once on the reading thread, before the events are read, with a trace that has only processes,
    /// threads and the window. May be null; must not throw.
    std::function<void(const Trace& outline)> on_outline{};
};

/// Reads a file like Trace::load(). Saved traces have no progress.
MAREY_API Trace load_trace(const std::string& path, LoadProgress& progress);

}  // namespace marey
