// clock_probe.h: a kernel that shows how far CUPTI's times of the GPU are off.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sources/cuda/clock_relation.h"
#include "sources/cuda/cuda_libraries.h"
#include "sources/cuda/cupti_clock.h"

namespace marey::cuda {

/// Runs a kernel of one thread, a few times, on a queue of its own; it plays ping-pong with the host for some
/// 20 us. One thread. Nothing throws; where it cannot run, there is no measurement.
class ClockProbe {
  public:
    explicit ClockProbe(const CuptiClock& clock) : clock_(clock) {}
    /// On every device that the program uses, in one context of it.
    void run();
    /// What CUPTI said of those runs, and what follows. What a busy program holds back comes later.
    std::vector<ClockMeasurement> measure(const std::vector<ProbeRun>& runs) {
        return relation_.measure(runs);
    }

  private:
    /// What the kernel and the host share; mapped into both.
    struct Mailbox;
    struct InContext {
        bool is_usable = false;
        void* stream = nullptr;
        void* function = nullptr;
        Mailbox* box = nullptr;
        std::uint64_t box_on_device = 0;
    };
    InContext& prepare(std::uint64_t context);
    void run_on(int device, InContext& in_context);
    std::uint64_t now_ns() const noexcept;

    const CuptiClock& clock_;
    std::map<std::uint64_t, InContext> contexts_;  ///< by their ids
    std::uint32_t round_ = 0;
    ClockRelation relation_;
};

}  // namespace marey::cuda
