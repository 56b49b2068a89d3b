// machine.h: devices that only let time pass: queues, memory, and waits.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <marey/device.h>

#include "simulated/settings.h"

namespace marey::simulated {

inline constexpr std::uint64_t kNever = ~std::uint64_t{0};

/// An item of work for a queue.
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
    std::uint64_t start = 0;  ///< host ticks; set by the machine
    std::uint64_t end = 0;    ///< kNever: it never ends
};

/// The virtual schedule: a job starts when it has reached its queue and the queue's earlier jobs are done.
/// Not thread-safe.
class Machine {
  public:
    /// Adds jobs to a queue; those of a graph may start together.
    void give(std::vector<Job> jobs, std::uint64_t now, const Settings& settings);
    /// A queue waits for another; the wait itself is a job.
    void add_wait(Job wait, std::uint32_t other, std::uint64_t now);
    /// Removes and returns the jobs that are done at `now`, ordered by end.
    std::vector<Job> take_finished(std::uint64_t now);
    /// The time at which a queue, a device or (-1) every device has finished all jobs; at least `now`.
    std::uint64_t end_of_queue(std::int32_t device, std::uint32_t stream, std::uint64_t now) const;
    std::uint64_t end_of_device(std::int32_t device, std::uint64_t now) const;
    /// The same for recorded jobs.
    std::uint64_t end_of_recorded(std::uint64_t now) const;

    /// 0: out of memory.
    std::uint64_t allocate(std::int32_t device, std::uint64_t bytes, const Settings& settings);
    /// The number of bytes freed; 0: no such allocation.
    std::uint64_t release(std::int32_t device, std::uint64_t address);
    std::uint64_t allocated(std::int32_t device) const;

  private:
    struct Queue {
        std::deque<Job> jobs;  ///< ordered by end
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
