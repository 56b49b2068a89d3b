// device_timer.cpp: times ranges with a device's events, and knows which ones.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <marey/detail/thread_safety.h>
#include <marey/device.h>
#include <marey/observe.h>

#include "record/clocks/clock.h"
#include "record/devices/devices.h"
#include "record/source_writer.h"

namespace marey {
namespace {

using Deadline = std::chrono::steady_clock::time_point;

/// At most this many pairs wait. Then the older half is measured: those are most likely complete.
constexpr std::size_t kMaxWaiting = 4096;

struct TimedStart final : ObserverContext {
    std::unique_ptr<DeviceEvent> event;
    std::uint64_t ticks = 0;
};

struct Pair {
    std::unique_ptr<DeviceEvent> from;
    std::unique_ptr<DeviceEvent> to;
    std::uint64_t range;
    std::uint64_t ticks;  ///< when the range began
    std::uint32_t site;
};

/// While a session needs ranges timed on this device (RecordingNeeds::timed_devices), an event is recorded in
/// the device's queue where a range begins and where it ends. The time between them is read when a session
/// stops, or earlier when many pairs wait, and written as work of the kind Timed.
class DeviceTimer final : public Source {
  public:
    explicit DeviceTimer(std::shared_ptr<DeviceRuntime> device)
        : device_(std::move(device)), name_(device_->name()), source_name_(name_ + " events") {}

    const char* name() const noexcept override { return source_name_.c_str(); }

    void needs_changed(const RecordingNeeds& needs) noexcept override {
        const bool is_wanted =
            needs.is_recording() && (needs.timed_devices & device_bit(device_->type())) != 0;
        const std::uint32_t scopes = is_wanted ? needs.scopes : 0;
        if (scopes == scopes_) return;
        scopes_ = scopes;
        is_on_.store(is_wanted, std::memory_order_release);
        reported_.store(0, std::memory_order_relaxed);
        if (handle_ != 0) remove_observer(std::exchange(handle_, 0));
        if (!is_wanted) return;
        if (!log_) log_ = std::make_unique<DeviceLog>(source_name_);
        Observer observer;
        observer.start = on_start;
        observer.end = on_end;
        observer.data = this;
        observer.needs_ids = true;
        observer.scopes = ScopeSet::from_bits(scopes);
        try {
            handle_ = add_observer(observer);
        } catch (const std::exception& error) {
            note_problem("device_not_timed", error.what());
        }
    }

    void flush(std::uint64_t timeout_ns, bool is_stopping) noexcept override {
        const Deadline deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(timeout_ns);
        std::vector<Pair> pairs;
        {
            const ScopedLock lock(mutex_);
            pairs.swap(waiting_);
        }
        if (pairs.empty()) return;
        if (is_stopping) wait_if_not_queryable(*pairs.back().to);
        for (;; std::this_thread::sleep_for(std::chrono::microseconds(100))) {
            write_reached(pairs, deadline);
            if (pairs.empty()) return;
            if (!is_stopping) return keep_waiting(pairs);
            if (std::chrono::steady_clock::now() > deadline)
                return lose(pairs.size(), "The events of " + name_ + " did not all complete in time.");
        }
    }

    // The parent's events must not be released here.
    void forked() noexcept override {
        scopes_ = ~0u;  // its observer is removed, or added again, with the next session
        is_on_.store(false, std::memory_order_release);
        std::construct_at(&mutex_);
        std::construct_at(&waiting_);
    }

  private:
    static std::unique_ptr<ObserverContext> on_start(const ObservedRange& range, void* data) {
        auto& self = *static_cast<DeviceTimer*>(data);
        // Async ranges only span the work of others.
        if (!self.is_on_.load(std::memory_order_acquire) || range.is_async() ||
            !is_timed_on_device(range.name()))
            return nullptr;
        auto begun = std::make_unique<TimedStart>();
        begun->event = self.record(false);
        if (begun->event == nullptr) return nullptr;
        begun->ticks = Clock::now();
        return begun;
    }

    static void on_end(const ObservedRange& range, ObserverContext* context, void* data) {
        auto& self = *static_cast<DeviceTimer*>(data);
        if (context == nullptr || !self.is_on_.load(std::memory_order_acquire)) return;
        auto& begun = static_cast<TimedStart&>(*context);
        std::unique_ptr<DeviceEvent> event = self.record(true);
        if (event == nullptr) return;
        if (event->device() != begun.event->device()) {
            self.lose(1, "Events are not on the same device: " + std::to_string(begun.event->device()) +
                             " and " + std::to_string(event->device()) + ".");
            return;
        }
        self.keep({std::move(begun.event), std::move(event), range.id(), begun.ticks,
                   DeviceLog::work_site(DeviceWorkKind::Timed, range.name())});
    }

    /// Null: there is nothing to measure on this thread, or recording failed.
    std::unique_ptr<DeviceEvent> record(bool is_needed) noexcept {
        try {
            std::unique_ptr<DeviceEvent> event = device_->record();
            if (event == nullptr && is_needed)
                lose(1, "No device of " + name_ + " was current when a range ended.");
            return event;
        } catch (const std::exception& error) {
            lose(1, "Events were not recorded for " + name_ + ": " + error.what());
        }
        return nullptr;
    }

    /// Nothing: the device cannot be queried, or does not answer.
    std::optional<bool> has_reached(const DeviceEvent& point) noexcept {
        try {
            return device_->has_reached(point);
        } catch (const std::exception&) {  // reported when the elapsed time is read
            return std::nullopt;
        }
    }

    void wait_if_not_queryable(const DeviceEvent& point) noexcept {
        if (has_reached(point).has_value()) return;
        try {
            device_->synchronize();
        } catch (const std::exception& error) {
            report("Waiting for " + name_ + " failed: " + error.what());
        }
    }

    /// Removes the pairs whose events the device has reached.
    void write_reached(std::vector<Pair>& pairs, Deadline deadline) noexcept {
        const auto unreached = std::stable_partition(pairs.begin(), pairs.end(), [this](const Pair& pair) {
            return has_reached(*pair.to).value_or(true) && has_reached(*pair.from).value_or(true);
        });
        const std::span reached(pairs.begin(), unreached);
        write(reached, deadline);
        pairs.erase(pairs.begin(), unreached);
    }

    void keep_waiting(std::vector<Pair>& pairs) {
        const ScopedLock lock(mutex_);
        waiting_.insert(waiting_.begin(), std::move_iterator(pairs.begin()), std::move_iterator(pairs.end()));
    }

    void keep(Pair pair) {
        std::vector<Pair> older;
        {
            const ScopedLock lock(mutex_);
            waiting_.push_back(std::move(pair));
            if (waiting_.size() >= kMaxWaiting) {
                const auto middle = waiting_.begin() + kMaxWaiting / 2;
                older.assign(std::move_iterator(waiting_.begin()), std::move_iterator(middle));
                waiting_.erase(waiting_.begin(), middle);
            }
        }
        if (!older.empty()) write(older, Deadline::max());
    }

    /// The events of each pair are released as soon as its time is known.
    void write(std::span<Pair> pairs, Deadline deadline) noexcept {
        for (std::size_t i = 0; i < pairs.size(); ++i) {
            const Pair pair = std::move(pairs[i]);
            if (std::chrono::steady_clock::now() > deadline) {
                lose(pairs.size() - i, "The events of " + name_ + " did not all complete in time.");
                return;
            }
            try {
                write(pair, device_->elapsed_us(*pair.from, *pair.to));
            } catch (const std::exception& error) {
                lose(1, "Could not measure the time between two events of " + name_ + ": " + error.what());
            }
        }
    }

    void write(const Pair& pair, double elapsed_us) noexcept {
        constexpr double kMaxUs = 1e15;
        if (!(elapsed_us >= 0) || elapsed_us > kMaxUs) {
            lose(1,
                 "Invalid time between two events of " + name_ + ": " + std::to_string(elapsed_us) + " us.");
            return;
        }
        const double ticks = elapsed_us * 1e-6 * static_cast<double>(Clock::ticks_per_second());
        DeviceWork work{.kind = DeviceWorkKind::Timed,
                        .site = pair.site,
                        .device = {device_->type(), pair.from->device()},
                        .start = pair.ticks,
                        .end = pair.ticks + static_cast<std::uint64_t>(std::llround(ticks)),
                        .range = pair.range};
        log_->write(work);
    }

    void lose(std::uint64_t pairs, const std::string& why) noexcept {
        log_->count_lost(pairs);
        report(why);
    }

    /// Only the first few are reported in each session.
    void report(const std::string& why) noexcept {
        constexpr int kMaxReported = 8;
        if (reported_.fetch_add(1, std::memory_order_relaxed) < kMaxReported)
            note_problem("device_not_timed", why);
    }

    std::shared_ptr<DeviceRuntime> device_;
    const std::string name_;
    const std::string source_name_;
    std::uint32_t scopes_ =
        0;  ///< of the added observer; like handle_ and log_, only used by needs_changed()
    ObserverHandle handle_ = 0;
    std::unique_ptr<DeviceLog> log_;  ///< made before any callback can come
    std::atomic<bool> is_on_{false};
    std::atomic<int> reported_{0};
    Mutex mutex_;
    std::vector<Pair> waiting_ MAREY_GUARDED_BY(mutex_);
};

using Names = std::set<std::string, std::less<>>;

/// Read without a lock by every range: each change adds a set in front, and the old ones stay.
struct NamesSnapshot {
    Names names;
    const NamesSnapshot* before = nullptr;
};

std::atomic<const NamesSnapshot*>& untimed_names() {
    static std::atomic<const NamesSnapshot*> newest{new NamesSnapshot};
    return newest;
}

}  // namespace

std::shared_ptr<Source> device_timer(std::shared_ptr<DeviceRuntime> device) {
    return std::make_shared<DeviceTimer>(std::move(device));
}

bool is_timed_on_device(std::string_view range_name) noexcept {
    return !untimed_names().load(std::memory_order_acquire)->names.contains(range_name);
}

void time_on_device(std::span<const std::string_view> range_names, bool is_timed) {
    static Mutex& mutex = *new Mutex;
    const ScopedLock lock(mutex);
    const NamesSnapshot* const newest = untimed_names().load(std::memory_order_acquire);
    auto changed = std::unique_ptr<NamesSnapshot>(new NamesSnapshot{newest->names, newest});
    for (const std::string_view name : range_names) {
        if (is_timed) {
            changed->names.erase(std::string(name));
        } else {
            changed->names.emplace(name);
        }
    }
    untimed_names().store(changed.release(), std::memory_order_release);
}

void time_on_device(std::string_view range_name, bool is_timed) {
    time_on_device({&range_name, 1}, is_timed);
}

}  // namespace marey
