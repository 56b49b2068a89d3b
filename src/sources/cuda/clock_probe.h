// clock_probe.h: a kernel that measures the error of CUPTI's GPU times.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sources/cuda/clock_relation.h"
#include "sources/cuda/cuda_libraries.h"
#include "sources/cuda/cupti_clock.h"

namespace marey::cuda {

/// Runs a kernel with one GPU thread a few times on a separate stream; it exchanges messages with the host
/// for some 20 us. Single-threaded. Nothing throws; if the kernel cannot run, there is no measurement.
class ClockProbe {
  public:
    explicit ClockProbe(const CuptiClock& clock) : clock_(clock) {}
    /// Runs on every device that the program uses, in one context of each.
    void run();
    /// Computes measurements from CUPTI's records of those runs. Runs that a busy program delays come later.
    std::vector<ClockMeasurement> measure(const std::vector<ProbeRun>& runs) {
        return relation_.measure(runs);
    }

  private:
    /// Memory shared by the kernel and the host, mapped into both.
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
    std::map<std::uint64_t, InContext> contexts_;  ///< by context id
    std::uint32_t round_ = 0;
    ClockRelation relation_;
};

}  // namespace marey::cuda
