// clock_relation.h: how far CUPTI's times of the GPU are off, from what the host and CUPTI say of the same
// runs.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sources/cuda/activity_decoder.h"

namespace marey::cuda {

/// What one exchange with the GPU says: it read `gpu_ns` of its own clock between two times of the host.
struct ClockExchange {
    std::uint64_t before_ns;
    std::uint64_t gpu_ns;
    std::uint64_t after_ns;
};

/// How much must be added to CUPTI's times to be true: something between the two.
struct ClockOffset {
    double min_ns;
    double max_ns;
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

/// A run as the host saw it. Runs of one round follow one another within a millisecond.
struct ExchangedRun {
    int device = 0;
    std::uint32_t round = 0;
    std::vector<ClockExchange> exchanges{};  ///< at least one
    std::uint64_t first_gpu_ns = 0;
    std::uint64_t last_gpu_ns = 0;
    std::uint64_t middle_ns() const { return exchanges[exchanges.size() / 2].before_ns; }
};

/// Finds out which run of the host's is which of CUPTI's, and what follows. One thread.
class ClockRelation {
  public:
    /// In the order in which they ran on their device.
    void add(ExchangedRun run) { waiting_.push_back(std::move(run)); }
    /// What CUPTI has told since. What a busy program holds back comes later.
    std::vector<ClockMeasurement> measure(const std::vector<ProbeRun>& told);

  private:
    struct Pair {
        std::size_t waiting;  ///< its place in `waiting_`
        ProbeRun run;
    };
    std::vector<Pair> pairs_of(int device, std::vector<ProbeRun> told) const;
    /// CUPTI's runs and ours in the order of time, if they are as many and equally far apart.
    std::vector<Pair> pairs_in_order(const std::vector<std::size_t>& ours,
                                     const std::vector<ProbeRun>& told) const;
    std::vector<Pair> nearest_pairs(int device, std::vector<std::size_t> ours,
                                    const std::vector<ProbeRun>& told) const;
    /// What was to be added to that device's times when last measured.
    double known_offset(int device) const;

    std::vector<ExchangedRun> waiting_;  ///< for what CUPTI says
    std::map<int, double> offsets_;
};

}  // namespace marey::cuda
