// simulation.h: the simulated machine of the process, the calls of its library, and the recording of both.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <marey/device.h>

#include "simulated/activity_buffers.h"
#include "simulated/device_clock.h"
#include "simulated/machine.h"
#include "simulated/settings.h"

namespace marey::simulated {

/// Thread-safe. Created on first use, never destroyed: threads may launch work until the process ends.
class Simulation final : public DeviceActivitySource {
  public:
    static Simulation& get();

    bool configure(std::string_view key, double value);
    void reset();
    Settings settings() const;
    std::uint64_t lost() const;
    bool has_device(std::int32_t device) const;

    // Calls of the library. They return their correlation id, or 0 if they are refused.
    std::uint32_t launch(const char* call, std::vector<Job> jobs);
    std::uint32_t add_wait(Job wait, std::uint32_t other);
    /// False: the work never ends, or there is no such device.
    bool synchronize(std::int32_t device);
    std::uint64_t allocate(std::int32_t device, std::uint64_t bytes);
    bool release(std::int32_t device, std::uint64_t address);

    /// The time in ticks at which a queue finishes its current jobs, or kNever.
    std::uint64_t end_of_queue(std::int32_t device, std::uint32_t stream) const;
    /// Sleeps. False: `ticks` was not reached within `max_ns`.
    static bool wait_until(std::uint64_t ticks, std::uint64_t max_ns = ~std::uint64_t{0});

    // DeviceActivitySource
    std::string record(const DeviceNeeds& needs, DeviceLog& log) noexcept override;
    bool flush(std::uint64_t timeout_ns, bool wait_for_work) noexcept override;
    void forked() noexcept override;

  private:
    /// The state that `mutex` protects.
    struct State {
        explicit State(std::uint64_t now) : clock(now) {}
        std::mutex mutex;
        Settings settings;
        Machine machine;
        DeviceClock clock;
        ClockRelation relation;
        ActivityBuffers buffers;
        std::mt19937 random{7};
        std::uint32_t last_correlation = 0;
        std::uint64_t last_node = 0;
        DeviceNeeds needs;
        DeviceLog* log = nullptr;
    };

    Simulation();
    bool has_device(const State& state, std::int32_t device) const;
    std::uint32_t call(const char* name, std::int32_t device,
                       const std::function<void(State&, std::uint64_t now, std::uint32_t correlation)>& body);
    void collect(State& state, std::uint64_t now);
    void deliver(State& state, bool everything);
    static void report_metadata(const State& state);
    void read_clock(State& state);
    void report(State& state, std::int32_t device, std::uint64_t address, std::int64_t bytes, bool refused);

    State* state_;  ///< a forked child gets a new one: its parent's may have been in use
};

}  // namespace marey::simulated
