// live_memory.h: allocation reports in order of time, and which allocations they leave live.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include <marey/memory_use.h>
#include <marey/trace.h>

namespace marey {

/// Hostile sums wrap round instead of being undefined.
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
    bool has_totals = false;          ///< some report tells a total
    std::vector<std::uint32_t> rows;  ///< of Trace::memory(), in order of time
};

/// In order of process and device; refused allocations included.
std::vector<DeviceReports> reports_by_device(const Trace& trace);

/// Which allocations are live while the reports of one device pass by.
class LiveMemory {
  public:
    enum class Effect : std::uint8_t {
        None,      ///< a refusal, or nothing was taken or given back
        Taken,     ///< a new allocation
        Returned,  ///< an allocation that was live
        Earlier,   ///< given back, but not taken in the window
    };
    struct Change {
        Effect effect = Effect::None;
        bool hides_free = false;  ///< Taken at an address that was live: its free was not reported
    };

    explicit LiveMemory(const MemoryColumns& reports) : reports_(reports) {}
    Change follow(std::uint32_t report);
    /// By address, the report that took it. Allocations without an address are followed nowhere.
    const std::unordered_map<std::uint64_t, std::uint32_t>& live() const noexcept { return live_; }

  private:
    const MemoryColumns& reports_;
    std::unordered_map<std::uint64_t, std::uint32_t> live_;
};

/// One point for each report that is no refusal.
std::vector<MemoryPoint> memory_points(const MemoryColumns& reports, const DeviceReports& device);

}  // namespace marey
