// loaded_trace.h: a trace that is shown, with its indexes, and its loading in the background.
#pragma once

#include <chrono>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include <marey/detail/thread_safety.h>
#include <marey/range_filter.h>
#include <marey/samples.h>
#include <marey/selection.h>
#include <marey/suspended_calls.h>
#include <marey/symbolize.h>
#include <marey/timeline.h>
#include <marey/trace.h>
#include <marey/view.h>

#include "serve/counter_series.h"
#include "serve/range_links.h"

namespace marey::serve {

/// A trace and what responses need beside it. Safe to use from several threads.
class LoadedTrace {
  public:
    LoadedTrace(Trace trace, std::uint64_t generation)
        : recorded_(std::move(trace)),
          trace_(with_sample_tracks(with_task_tracks(recorded_))),
          timeline_(trace_),
          counters_(counter_series(recorded_)),
          links_(recorded_),
          generation_(generation) {}

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
    Trace selected(const Selection& selection) const {
        if (selects_everything(recorded_, selection)) return recorded_;
        {
            const ScopedLock lock(mutex_);
            for (const auto& [known, part] : selections_) {
                if (known == selection) return part;
            }
        }
        Trace part = select_ranges(recorded_, selection);
        const ScopedLock lock(mutex_);
        selections_.emplace_front(selection, part);
        if (selections_.size() > kKeptSelections) selections_.pop_back();
        return part;
    }

    /// The response to a request that takes a pass over the trace: one of the last few, or make().
    std::string remembered(const std::string& target, const std::function<std::string()>& make) const {
        {
            const ScopedLock lock(mutex_);
            for (const auto& [known, response] : responses_) {
                if (known == target) return response;
            }
        }
        std::string response = make();
        if (response.size() > kLongestKept) return response;
        const ScopedLock lock(mutex_);
        responses_.emplace_front(target, response);
        if (responses_.size() > kKeptResponses) responses_.pop_back();
        return response;
    }

  private:
    static constexpr std::size_t kKeptSelections = 3;
    static constexpr std::size_t kKeptResponses = 16;
    static constexpr std::size_t kLongestKept = std::size_t{4} << 20;

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
    explicit TraceSlot(ViewSource source) : source_(std::move(source)) {
        if (source_.progress != nullptr) {
            source_.progress->on_outline = [this](const Trace& outline) {
                const ScopedLock lock(mutex_);
                status_.outline = outline;
            };
        }
        const ScopedLock lock(mutex_);
        start(0);
    }
    ~TraceSlot() {
        if (thread_.joinable()) thread_.join();
    }

    struct Status {
        LoadState state = LoadState::Loading;
        std::string error;
        std::int64_t elapsed_ms = 0;  ///< of loading, until now or until it ended
        std::uint64_t generation = 0;
        std::shared_ptr<const LoadedTrace> loaded;  ///< null before the first load has ended
        Trace outline;        ///< while loading: processes, threads and window, once they are known
        double progress = 0;  ///< while loading: the share that is done; 0: not known
    };
    Status status() const {
        const ScopedLock lock(mutex_);
        Status status = status_;
        if (status.state != LoadState::Loading) return status;
        status.elapsed_ms = milliseconds_since(begin_);
        if (source_.progress != nullptr && source_.progress->total != 0)
            status.progress =
                static_cast<double>(source_.progress->done) / static_cast<double>(source_.progress->total);
        return status;
    }
    /// Waits until loading has ended.
    void wait() const {
        const ScopedLock lock(mutex_);
        while (status_.state == LoadState::Loading) ended_.wait(mutex_);
    }
    const std::string& name() const noexcept { return source_.name; }

    /// Reads the trace again in the background, unless that is under way. `last_ns`: only this newest part,
    /// of a trace that can be followed. Returns the generation to come.
    std::uint64_t reload(std::int64_t last_ns = 0) {
        const ScopedLock lock(mutex_);
        if (status_.state != LoadState::Loading) start(source_.load_last != nullptr ? last_ns : 0);
        return status_.generation;
    }
    /// Whether its program runs, and the page can follow it.
    bool is_live(const Trace& trace) const {
        return source_.load_last != nullptr && trace.has_problem("running");
    }

  private:
    static std::int64_t milliseconds_since(std::chrono::steady_clock::time_point begin) {
        return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin)
            .count();
    }

    void start(std::int64_t last_ns) MAREY_REQUIRES(mutex_) {
        if (thread_.joinable()) thread_.join();  // it has ended: the state is not Loading
        status_.state = LoadState::Loading;
        status_.error.clear();
        ++status_.generation;
        begin_ = std::chrono::steady_clock::now();
        thread_ =
            std::thread([this, generation = status_.generation, last_ns] { load(generation, last_ns); });
    }
    void load(std::uint64_t generation, std::int64_t last_ns) {
        std::shared_ptr<const LoadedTrace> loaded;
        std::string error;
        try {
            Trace trace = last_ns > 0
                              ? filter_ranges(source_.load_last(last_ns), {.fold_imports = true})
                              : filter_ranges(source_.load(), {.fold_imports = source_.folds_imports});
            if (trace.samples().size() != 0) trace = symbolize_trace(trace, {}).trace;
            loaded = std::make_shared<const LoadedTrace>(std::move(trace), generation);
        } catch (const std::exception& caught) {
            error = caught.what();
        }
        const ScopedLock lock(mutex_);
        status_.elapsed_ms = milliseconds_since(begin_);
        status_.error = error;
        status_.state = loaded != nullptr ? LoadState::Ready : LoadState::Failed;
        status_.outline = Trace();
        if (loaded != nullptr) status_.loaded = std::move(loaded);
        ended_.notify_all();
    }

    ViewSource source_;
    mutable Mutex mutex_;
    Status status_ MAREY_GUARDED_BY(mutex_);
    std::chrono::steady_clock::time_point begin_ MAREY_GUARDED_BY(mutex_);
    mutable Condition ended_;
    std::thread thread_ MAREY_GUARDED_BY(mutex_);
};

}  // namespace marey::serve
