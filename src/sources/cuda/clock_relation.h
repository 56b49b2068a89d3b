// clock_relation.h: the error of CUPTI's GPU times, from the host's and CUPTI's times of the same runs.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sources/cuda/activity_decoder.h"

namespace marey::cuda {

/// One exchange with the GPU: its clock showed `gpu_ns` at some time between two host times.
struct ClockExchange {
    std::uint64_t before_ns;
    std::uint64_t gpu_ns;
    std::uint64_t after_ns;
};

/// The amount to add to CUPTI's times to correct them is between these two.
struct ClockOffset {
    double min_ns;
    double max_ns;
};

/// CUPTI relates the clocks once and keeps the slope that it measured: its times drift from the host's by
/// microseconds per second.
struct ClockMeasurement {
    int device = 0;
    std::uint64_t at_ns = 0;  ///< in CUPTI's time
    ClockOffset offset{};
};

/// A kernel read the GPU's clock at its start and its end and exchanged it with the host in between; CUPTI
/// reports when the kernel ran. It cannot have begun after its first reading, nor ended before its last one.
ClockOffset clock_offset(const std::vector<ClockExchange>& exchanges, std::uint64_t first_gpu_ns,
                         std::uint64_t last_gpu_ns, const ProbeRun& run);

/// A run as measured by the host. Runs of one round follow one another within a millisecond.
struct ExchangedRun {
    int device = 0;
    std::uint32_t round = 0;
    std::vector<ClockExchange> exchanges{};  ///< at least one
    std::uint64_t first_gpu_ns = 0;
    std::uint64_t last_gpu_ns = 0;
    std::uint64_t middle_ns() const { return exchanges[exchanges.size() / 2].before_ns; }
};

/// Matches the host's runs with CUPTI's and computes the clock offsets. Single-threaded.
class ClockRelation {
  public:
    /// Must be added in the order in which they ran on their device.
    void add(ExchangedRun run) { waiting_.push_back(std::move(run)); }
    /// Takes the runs that CUPTI has reported since the last call. Runs that a busy program delays come
    /// later.
    std::vector<ClockMeasurement> measure(const std::vector<ProbeRun>& reported);

  private:
    struct Pair {
        std::size_t waiting;  ///< index in `waiting_`
        ProbeRun run;
    };
    std::vector<Pair> pairs_of(int device, std::vector<ProbeRun> reported) const;
    /// Pairs CUPTI's runs and ours in time order, if their numbers and distances agree.
    std::vector<Pair> pairs_in_order(const std::vector<std::size_t>& ours,
                                     const std::vector<ProbeRun>& reported) const;
    std::vector<Pair> nearest_pairs(int device, std::vector<std::size_t> ours,
                                    const std::vector<ProbeRun>& reported) const;
    /// The correction of that device's times at the last measurement.
    double known_offset(int device) const;

    std::vector<ExchangedRun> waiting_;  ///< runs that CUPTI has not reported yet
    std::map<int, double> offsets_;
};

}  // namespace marey::cuda
