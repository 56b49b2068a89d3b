// loaded_trace.cpp: loads traces in the background, and keeps the parts that views ask for.
#include "serve/loaded_trace.h"

#include <exception>
#include <utility>

#include <marey/range_filter.h>
#include <marey/suspended_calls.h>

namespace marey::serve {
namespace {

constexpr std::size_t kKeptSelections = 3;
constexpr std::size_t kKeptResponses = 16;
constexpr std::size_t kLongestKept = std::size_t{4} << 20;

std::int64_t milliseconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin)
        .count();
}

}  // namespace

LoadedTrace::LoadedTrace(Trace trace, std::uint64_t generation)
    : recorded_(std::move(trace)),
      trace_(with_task_tracks(recorded_)),
      timeline_(trace_),
      counters_(counter_series(recorded_)),
      links_(recorded_),
      generation_(generation) {}

Trace LoadedTrace::selected(const Selection& selection) const {
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

std::string LoadedTrace::remembered(const std::string& target,
                                    const std::function<std::string()>& make) const {
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

TraceSlot::TraceSlot(ViewSource source) : source_(std::move(source)) {
    if (source_.progress != nullptr) {
        source_.progress->on_outline = [this](const Trace& outline) {
            const ScopedLock lock(mutex_);
            status_.outline = outline;
        };
    }
    const ScopedLock lock(mutex_);
    start();
}

TraceSlot::~TraceSlot() {
    if (thread_.joinable()) thread_.join();
}

TraceSlot::Status TraceSlot::status() const {
    const ScopedLock lock(mutex_);
    Status status = status_;
    if (status.state != LoadState::Loading) return status;
    status.elapsed_ms = milliseconds_since(begin_);
    if (source_.progress != nullptr && source_.progress->total != 0)
        status.progress =
            static_cast<double>(source_.progress->done) / static_cast<double>(source_.progress->total);
    return status;
}

void TraceSlot::wait() const {
    const ScopedLock lock(mutex_);
    while (status_.state == LoadState::Loading) ended_.wait(mutex_);
}

std::uint64_t TraceSlot::reload() {
    const ScopedLock lock(mutex_);
    if (status_.state != LoadState::Loading) start();
    return status_.generation;
}

void TraceSlot::start() {
    if (thread_.joinable()) thread_.join();  // it has ended: the state is not Loading
    status_.state = LoadState::Loading;
    status_.error.clear();
    ++status_.generation;
    begin_ = std::chrono::steady_clock::now();
    thread_ = std::thread([this, generation = status_.generation] { load(generation); });
}

void TraceSlot::load(std::uint64_t generation) {
    std::shared_ptr<const LoadedTrace> loaded;
    std::string error;
    try {
        Trace trace = filter_ranges(source_.load(), {.fold_imports = source_.folds_imports});
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

}  // namespace marey::serve
