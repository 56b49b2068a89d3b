// timed_ranges.cpp: which ranges are timed on devices.
#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include <marey/detail/thread_safety.h>
#include <marey/device.h>

#include "record/devices/devices.h"

namespace marey {
namespace {

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
