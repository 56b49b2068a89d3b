// loaded_trace.h: a trace that is shown, with its indexes, and its loading in the background.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <marey/detail/thread_safety.h>
#include <marey/selection.h>
#include <marey/timeline.h>
#include <marey/trace.h>
#include <marey/view.h>

#include "serve/counter_series.h"
#include "serve/range_links.h"

namespace marey::serve {

/// A trace and what responses need beside it. Safe to use from several threads.
class LoadedTrace {
  public:
    LoadedTrace(Trace trace, std::uint64_t generation);

    /// The trace to draw, with a track for each asyncio task. Rows of recorded() have the same numbers.
    const Trace& trace() const noexcept { return trace_; }
    /// The trace to count: without those tracks, which repeat the time of threads.
    const Trace& recorded() const noexcept { return recorded_; }
    const Timeline& timeline() const noexcept { return timeline_; }
    const std::vector<CounterSeries>& counters() const noexcept { return counters_; }
    std::uint64_t generation() const noexcept { return generation_; }
    const RangeLinks& links() const noexcept { return links_; }
    std::int64_t origin_ns() const noexcept { return trace_.window().start_ns; }
    std::int64_t window_ns() const noexcept { return trace_.window().end_ns - origin_ns(); }

    /// The selected part of recorded() as a trace of its own. The last few are kept, because several views
    /// ask for the same one.
    Trace selected(const Selection& selection) const;

    /// The response to a request that takes a pass over the trace: one of the last few, or make().
    std::string remembered(const std::string& target, const std::function<std::string()>& make) const;

  private:
    Trace recorded_;
    Trace trace_;
    Timeline timeline_;
    std::vector<CounterSeries> counters_;
    RangeLinks links_;
    std::uint64_t generation_;
    mutable Mutex mutex_;
    // Newest first:
    mutable std::deque<std::pair<Selection, Trace>> selections_ MAREY_GUARDED_BY(mutex_);
    mutable std::deque<std::pair<std::string, std::string>> responses_ MAREY_GUARDED_BY(mutex_);
};

enum class LoadState : std::uint8_t { Loading, Ready, Failed };

/// One of the traces that the user asked for.
class TraceSlot {
  public:
    explicit TraceSlot(ViewSource source);
    ~TraceSlot();
    TraceSlot(const TraceSlot&) = delete;
    TraceSlot& operator=(const TraceSlot&) = delete;

    struct Status {
        LoadState state = LoadState::Loading;
        std::string error;
        std::int64_t elapsed_ms = 0;  ///< of loading, until now or until it ended
        std::uint64_t generation = 0;
        std::shared_ptr<const LoadedTrace> loaded;  ///< null before the first load has ended
        Trace outline;        ///< while loading: processes, threads and window, once they are known
        double progress = 0;  ///< while loading: the share that is done; 0: not known
    };
    Status status() const;
    /// Waits until loading has ended.
    void wait() const;
    const std::string& name() const noexcept { return source_.name; }

    /// Reads the trace again in the background, unless that is under way. Returns the generation to come.
    std::uint64_t reload();

  private:
    void start() MAREY_REQUIRES(mutex_);
    void load(std::uint64_t generation);

    ViewSource source_;
    mutable Mutex mutex_;
    Status status_ MAREY_GUARDED_BY(mutex_);
    std::chrono::steady_clock::time_point begin_ MAREY_GUARDED_BY(mutex_);
    mutable Condition ended_;
    std::thread thread_ MAREY_GUARDED_BY(mutex_);
};

}  // namespace marey::serve
