// clock_probe.h: how far CUPTI's times of the GPU can be off, measured.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sources/cuda/activity_decoder.h"
#include "sources/cuda/cuda_libraries.h"
#include "sources/cuda/cupti_clock.h"

namespace kymo::cuda {

/// What one exchange with the GPU says: it read `gpu_ns` of its own clock between two times of the host.
struct ClockExchange {
    std::uint64_t before_ns;
    std::uint64_t gpu_ns;
    std::uint64_t after_ns;
};

/// How much must be added to CUPTI's times to be true: something between the two.
struct ClockOffset {
    double least_ns;
    double most_ns;
};

/// CUPTI relates the clocks once, and goes on with the slope that it found then: its times run away from the
/// host's by microseconds a second.
struct ClockMeasurement {
    int device = 0;
    std::uint64_t at_ns = 0;  ///< by CUPTI's account
    ClockOffset offset{};
};

/// A kernel read the GPU's clock at its start and its end and exchanged it with the host in between; CUPTI
/// says when the kernel ran. It cannot have begun after it read the clock, nor ended before.
ClockOffset clock_offset(const std::vector<ClockExchange>& exchanges, std::uint64_t first_gpu_ns,
                         std::uint64_t last_gpu_ns, const ProbeRun& run);

/// Runs a kernel of one thread, a few times, on a queue of its own; it plays ping-pong with the host for some
/// 20 us. One thread. Nothing throws; where it cannot run, there is no measurement.
class ClockProbe {
  public:
    explicit ClockProbe(const CuptiClock& clock) : clock_(clock) {}
    /// On every device that the program uses.
    void run();
    /// What CUPTI said of those runs, and what follows. What a busy program holds back comes later.
    std::vector<ClockMeasurement> measure(const std::vector<ProbeRun>& runs);

  private:
    /// What the kernel and the host share; mapped into both.
    struct Mailbox;
    struct OnDevice {
        bool is_usable = false;
        void* stream = nullptr;
        void* function = nullptr;
        Mailbox* box = nullptr;
        std::uint64_t box_on_device = 0;
    };
    struct Measured {
        int device = 0;
        std::uint32_t round = 0;
        std::vector<ClockExchange> exchanges;
        std::uint64_t first_gpu_ns = 0;
        std::uint64_t last_gpu_ns = 0;
    };
    OnDevice& prepare(int device);
    void run_on(int device, OnDevice& on_device);
    std::uint64_t now_ns() const noexcept;

    const CuptiClock& clock_;
    std::map<int, OnDevice> devices_;
    std::uint32_t round_ = 0;
    std::vector<Measured> waiting_;  ///< for what CUPTI says
};

}  // namespace kymo::cuda
