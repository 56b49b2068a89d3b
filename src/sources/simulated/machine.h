// machine.h: devices that do nothing but let time pass: queues, memory, and who waits for whom.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <marey/device.h>

#include "sources/simulated/settings.h"

namespace marey::simulated {

inline constexpr std::uint64_t kNever = ~std::uint64_t{0};

/// What a queue is given.
struct Job {
    DeviceWorkKind kind = DeviceWorkKind::Kernel;
    std::string name;
    std::int32_t device = 0;
    std::uint32_t stream = 0;
    std::uint64_t duration_ns = 0;
    std::uint64_t bytes = 0;
    std::uint64_t graph_node = 0;
    std::uint32_t correlation = 0;
    bool is_recorded = false;
    std::uint64_t start = 0;  ///< ticks of the host; set by the machine
    std::uint64_t end = 0;    ///< kNever: never
};

/// The virtual schedule: a job starts when it has reached its queue and what was given to that before is
/// done. Not safe for threads by itself.
class Machine {
  public:
    /// Gives jobs of one queue; those of a graph may start together.
    void give(std::vector<Job> jobs, std::uint64_t now, const Settings& settings);
    /// A queue waits for another; the wait itself is a job.
    void add_wait(Job wait, std::uint32_t other, std::uint64_t now);
    /// Takes out what is done at `now`, in order of the ends.
    std::vector<Job> take_finished(std::uint64_t now);
    /// When a device's queue, a device or (-1) every device will have done all; at least `now`.
    std::uint64_t end_of_queue(std::int32_t device, std::uint32_t stream, std::uint64_t now) const;
    std::uint64_t end_of_device(std::int32_t device, std::uint64_t now) const;
    /// The same of what is recorded.
    std::uint64_t end_of_recorded(std::uint64_t now) const;

    /// 0: there is not so much.
    std::uint64_t allocate(std::int32_t device, std::uint64_t bytes, const Settings& settings);
    /// How many bytes; 0: nothing is there.
    std::uint64_t release(std::int32_t device, std::uint64_t address);
    std::uint64_t allocated(std::int32_t device) const;

  private:
    struct Queue {
        std::deque<Job> jobs;  ///< in order of their ends
        std::uint64_t end = 0;
    };
    struct Memory {
        std::map<std::uint64_t, std::uint64_t> blocks;  ///< bytes by address
        std::uint64_t allocated = 0;
        std::uint64_t next = 0x10000;
    };
    std::map<std::pair<std::int32_t, std::uint32_t>, Queue> queues_;
    std::map<std::int32_t, Memory> memory_;
};

}  // namespace marey::simulated
