// devices.cpp: the registered devices, and their activities as a source.
#include "record/devices.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <marey/device.h>
#include <marey/error.h>
#include <marey/observe.h>

#include "record/clocks/clock.h"
#include "record/recorder.h"
#include "record/source.h"
#include "record/source_writer.h"

namespace marey {
namespace {

using Deadline = std::chrono::steady_clock::time_point;

/// At most this many pairs wait. Then the older half is measured: those are most likely complete.
constexpr std::size_t kMaxWaiting = 4096;

// ---- which ranges are timed ----

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

// ---- timing ----

struct Begun final : ObserverContext {
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
            untimed_names().load(std::memory_order_acquire)->names.contains(range.name()))
            return nullptr;
        auto begun = std::make_unique<Begun>();
        begun->event = self.record(false);
        if (begun->event == nullptr) return nullptr;
        begun->ticks = Clock::now();
        return begun;
    }

    static void on_end(const ObservedRange& range, ObserverContext* context, void* data) {
        auto& self = *static_cast<DeviceTimer*>(data);
        if (context == nullptr || !self.is_on_.load(std::memory_order_acquire)) return;
        auto& begun = static_cast<Begun&>(*context);
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
        DeviceWork work;
        work.kind = DeviceWorkKind::Timed;
        work.site = pair.site;
        work.device = {device_->type(), pair.from->device()};
        work.start = pair.ticks;
        work.end = pair.ticks + static_cast<std::uint64_t>(std::llround(ticks));
        work.range = pair.range;
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

}  // namespace

DeviceRuntime::~DeviceRuntime() = default;

std::string DeviceRuntime::activities_error() const {
    return "The device '" + name() + "' does not report its work.";
}

namespace {

class DeviceSource final : public Source {
  public:
    explicit DeviceSource(std::shared_ptr<DeviceRuntime> device)
        : device_(std::move(device)), activities_(*device_->activities()), name_(device_->name()) {}

    const char* name() const noexcept override { return name_.c_str(); }

    void needs_changed(const RecordingNeeds& needs) noexcept override {
        DeviceNeeds own;
        if (needs.is_recording() && (needs.device_types & device_bit(device_->type())) != 0) {
            own.activities = needs.device_activities & ~std::uint32_t{kDeviceTimes};
            own.memory = (needs.option_bits & detail::kOptionMemory) != 0;
        }
        if (own == needs_) return;
        needs_ = own;
        if (!log_) log_ = std::make_unique<DeviceLog>(name_);
        const std::string trouble = activities_.record(own, *log_);
        if (!trouble.empty()) note_problem("device_not_recorded", trouble);
    }

    void flush(std::uint64_t timeout_ns, bool wait_for_devices) noexcept override {
        if (needs_ == DeviceNeeds()) return;
        if (!activities_.flush(timeout_ns, wait_for_devices)) {
            note_problem(
                "device_work_missing",
                "The work of " + name_ +
                    " did not all complete, or was not all delivered, in time: some of it is missing.");
        }
    }

    void forked() noexcept override {
        needs_ = {};
        activities_.forked();
    }

  private:
    std::shared_ptr<DeviceRuntime> device_;
    DeviceActivitySource& activities_;
    std::string name_;
    DeviceNeeds needs_;
    std::unique_ptr<DeviceLog> log_;
};

struct Registry {
    Mutex mutex;
    std::vector<std::shared_ptr<DeviceRuntime>> devices MAREY_GUARDED_BY(mutex);
    std::vector<std::string> tried_libraries MAREY_GUARDED_BY(mutex);  ///< of devices, that were loaded
};

Registry& registry() {
    static auto& registry = *new Registry;  // devices may be requested until the very end
    return registry;
}

std::shared_ptr<DeviceRuntime> find_registered(std::string_view name) {
    const ScopedLock lock(registry().mutex);
    for (const auto& device : registry().devices) {
        if (device->name() == name) return device;
    }
    return nullptr;
}

/// Loads libmarey_NAME.so: Marey's own are in the same folder as this library, those of others where the
/// loader searches.
void* open_device_library(std::string_view name) {
    Dl_info info{};
    std::string folder;
    if (dladdr(reinterpret_cast<const void*>(&find_device), &info) != 0 && info.dli_fname != nullptr)
        folder = info.dli_fname;
    folder.resize(folder.rfind('/') + 1);  // npos + 1: none of it
    const std::string file = "libmarey_" + std::string(name) + ".so";
    void* const own = dlopen((folder + file).c_str(), RTLD_NOW | RTLD_LOCAL);
    return own != nullptr || name == "cuda" ? own : dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
}

/// Why the library of a device cannot be loaded; empty: it has registered its device, or there is none.
std::string load_device_library(std::string_view name) {
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789_";
    if (name.empty() || name.find_first_not_of(kLetters) != name.npos) return {};
    {
        const ScopedLock lock(registry().mutex);
        auto& tried_libraries = registry().tried_libraries;
        if (std::find(tried_libraries.begin(), tried_libraries.end(), name) != tried_libraries.end())
            return {};
    }
    void* const library = open_device_library(name);
    if (library == nullptr) {
        const char* const given = dlerror();
        const std::string why = given != nullptr ? given : "unknown cause";
        const bool is_absent = why.find("cannot open shared object file") != why.npos;
        return is_absent && name != "cuda" ? "" : why;
    }
    using Register = void (*)();
    const auto register_it = reinterpret_cast<Register>(dlsym(library, "marey_register_device"));
    if (register_it == nullptr) return "it does not export marey_register_device";
    {
        const ScopedLock lock(registry().mutex);
        auto& tried_libraries = registry().tried_libraries;
        if (std::find(tried_libraries.begin(), tried_libraries.end(), name) != tried_libraries.end())
            return {};
        tried_libraries.emplace_back(name);
    }
    register_it();
    return {};
}

}  // namespace

namespace {

std::atomic<CurrentQueue>& current_queue_of(DeviceType type) noexcept {
    static constinit std::atomic<CurrentQueue> by_type[64] = {};
    return by_type[static_cast<unsigned>(type) % 64];
}

}  // namespace

void set_current_queue(DeviceType type, CurrentQueue query) noexcept {
    current_queue_of(type).store(query, std::memory_order_release);
}

void* current_queue(DeviceType type) noexcept {
    const CurrentQueue query = current_queue_of(type).load(std::memory_order_acquire);
    return query != nullptr ? query() : nullptr;
}

void register_device(std::shared_ptr<DeviceRuntime> device) {
    if (device == nullptr) throw Error("register_device: the device is null");
    const std::string name = device->name();
    if (name.empty()) throw Error("register_device: a device needs a name");
    if (device_bit(device->type()) == 0 || device->type() == DeviceType::Cpu)
        throw Error("register_device: " + name + " needs a device type that is not the CPU's");
    {
        const ScopedLock lock(registry().mutex);
        for (const auto& other : registry().devices) {
            if (other->name() == name)
                throw Error("register_device: a device named " + name + " is already registered");
            if (other->type() == device->type()) {
                throw Error("register_device: " + name + " has the same type as " + other->name() +
                            ", which is already registered");
            }
        }
        registry().devices.push_back(device);
    }
    Recorder::get().add_source(std::make_shared<DeviceTimer>(device));
    if (device->activities() != nullptr)
        Recorder::get().add_source(std::make_shared<DeviceSource>(std::move(device)));
}

std::shared_ptr<DeviceRuntime> find_device(std::string_view name) {
    if (auto device = find_registered(name)) return device;
    load_device_library(name);
    return find_registered(name);
}

std::string device_error(std::string_view name) {
    if (find_registered(name) == nullptr) {
        const std::string why = load_device_library(name);
        if (!why.empty())
            return "The library of the device '" + std::string(name) + "' cannot be loaded: " + why;
    }
    const std::shared_ptr<DeviceRuntime> device = find_registered(name);
    if (device == nullptr) return "There is no device named '" + std::string(name) + "'.";
    return device->unavailable();
}

void synchronize_devices() noexcept {
    // If the program has loaded NVIDIA's driver, it may have work there.
    if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD) != nullptr) find_device("cuda");
    std::vector<std::shared_ptr<DeviceRuntime>> devices;
    {
        const ScopedLock lock(registry().mutex);
        devices = registry().devices;
    }
    for (const auto& device : devices) {
        try {
            device->synchronize();
        } catch (const std::exception&) {  // the device has reported it to the code that gave it the work
        }
    }
}

std::vector<std::string> registered_devices() {
    const ScopedLock lock(registry().mutex);
    std::vector<std::string> names;
    for (const auto& device : registry().devices) names.push_back(device->name());
    return names;
}

RequestedDevices find_devices(std::span<const std::string> names, std::uint32_t device_activities) {
    RequestedDevices wanted;
    for (const std::string& name : names) {
        std::string trouble = device_error(name);
        const std::shared_ptr<DeviceRuntime> device = find_registered(name);
        if (trouble.empty()) {
            wanted.types |= device_bit(device->type());
            if (device->activities() != nullptr) continue;
            wanted.without_source |= device_bit(device->type());
            trouble = (device_activities & kDeviceTimes) == 0 ? device->activities_error() : "";
            if (!trouble.empty())
                wanted.problems.push_back(trouble + " Ranges are timed with its events instead.");
        } else {
            wanted.problems.push_back(std::move(trouble));
        }
    }
    return wanted;
}

void device_begins(std::string_view name) noexcept {
    if (const std::shared_ptr<DeviceRuntime> device = find_registered(name)) device->begins();
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
