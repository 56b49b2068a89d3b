// live_memory.h: allocation reports in time order, and the allocations that are live after them.
#pragma once

#include <unordered_map>

#include <marey/memory_use.h>
#include <marey/trace.h>

namespace marey {

/// Sums from damaged files wrap around instead of being undefined.
constexpr std::int64_t wrapping_sum(std::int64_t a, std::int64_t b) noexcept {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
constexpr std::int64_t wrapping_difference(std::int64_t a, std::int64_t b) noexcept {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

/// The reports of one device of one process.
struct DeviceReports {
    Row process = 0;
    Device device{};
    bool has_totals = false;          ///< at least one report has a total
    std::vector<std::uint32_t> rows;  ///< rows of Trace::memory(), in time order
};

/// Sorted by process and device; includes failed allocations.
std::vector<DeviceReports> reports_by_device(const Trace& trace);

/// Tracks the live allocations while the reports of one device are processed.
class LiveMemory {
  public:
    enum class Effect : std::uint8_t {
        None,      ///< a failed allocation, or zero bytes
        Taken,     ///< a new allocation
        Returned,  ///< a live allocation was freed
        Earlier,   ///< freed, but allocated before the window
    };
    struct Change {
        Effect effect = Effect::None;
        bool hides_free = false;  ///< Taken at a live address: the free was not reported
    };

    explicit LiveMemory(const MemoryColumns& reports) : reports_(reports) {}
    Change follow(std::uint32_t report);
    /// The allocating report by address. Allocations without an address are not tracked.
    const std::unordered_map<std::uint64_t, std::uint32_t>& live() const noexcept { return live_; }

  private:
    const MemoryColumns& reports_;
    std::unordered_map<std::uint64_t, std::uint32_t> live_;
};

/// One point for each report that is not a failed allocation.
std::vector<MemoryPoint> memory_points(const MemoryColumns& reports, const DeviceReports& device);

}  // namespace marey
