// start_frames.h: the calls that were running when tracing started.
#pragma once

#include <Python.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <marey/detail/hot_path.h>

#include "sources/python/code_sites.h"

namespace marey::python {

/// The calling thread works for Marey: its calls are never recorded. Needs the GIL.
void become_own_thread();

/// The running calls of one thread when tracing started, the outermost first. Frames are used only for
/// comparisons.
struct StartFrames {
    std::vector<const void*> frames;
    std::vector<std::uint32_t> sites;  ///< 0: not recorded
    std::vector<CodeWord> words;
    std::vector<int> lines;   ///< the line of each; empty if lines are not recorded
    std::uint64_t start = 0;  ///< ticks, just before the session's start
    std::int64_t os_tid = 0;
    std::string thread_name;  ///< the name in `threading`; empty if it has none
    /// One tick apart: ranges are distinguished by their starts.
    std::uint64_t start_of(std::size_t i) const noexcept { return start - (sites.size() - i); }
    /// The line of the call; 0: not known.
    int line_of_caller(std::size_t i) const noexcept { return i > 0 && i <= lines.size() ? lines[i - 1] : 0; }
};

/// A running call that no hook has seen begin. Its range is open, unless the call is not recorded.
struct AdoptedFrame {
    const void* frame;
    detail::Opened opened;
    CodeWord word = 0;
    std::uint32_t site = 0;
    /// Whether it is a call that can be suspended.
    bool is_part() const noexcept { return (word & kCodeGenerator) != 0; }
};

/// The calls of every thread that has not had an event yet, by the number of its thread state. Guarded by the
/// GIL.
class StartFrameTable {
  public:
    /// Notes the calls of every thread of this interpreter. `start`: ticks.
    void take(std::uint64_t start);
    void clear() noexcept;
    /// Opens ranges for the calls of the calling thread, which has this state, unless that was done before.
    /// Returns the calls that are open now.
    std::vector<AdoptedFrame> adopt(PyThreadState* state);

  private:
    void report_absent(std::uint64_t own);
    std::map<std::uint64_t, StartFrames> threads_;
};

/// The only instance in the process; never destroyed.
[[gnu::visibility("hidden")]] extern StartFrameTable& start_frames;

}  // namespace marey::python
