// clock_relation.h: the error of CUPTI's GPU times, from the host's and CUPTI's times of the same runs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
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
inline ClockOffset clock_offset(const std::vector<ClockExchange>& exchanges, std::uint64_t first_gpu_ns,
                                std::uint64_t last_gpu_ns, const ProbeRun& run) {
    // Each exchange bounds the offset between the GPU's clock and the host's; the tightest bounds count.
    double least = -HUGE_VAL;
    double most = HUGE_VAL;
    for (const ClockExchange& exchange : exchanges) {
        const auto gpu = static_cast<double>(exchange.gpu_ns);
        least = std::max(least, static_cast<double>(exchange.before_ns) - gpu);
        most = std::min(most, static_cast<double>(exchange.after_ns) - gpu);
    }
    return ClockOffset{
        .min_ns = static_cast<double>(last_gpu_ns) + least - static_cast<double>(run.end_ns),
        .max_ns = static_cast<double>(first_gpu_ns) + most - static_cast<double>(run.start_ns)};
}

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
    std::vector<ClockMeasurement> measure(const std::vector<ProbeRun>& reported) {
        std::map<int, std::vector<ProbeRun>> by_device;
        for (const ProbeRun& run : reported) by_device[run.device].push_back(run);
        std::map<std::pair<std::uint32_t, int>, ClockMeasurement> measurements;  // by round and device
        std::set<std::size_t, std::greater<>> done;
        for (auto& [device, runs] : by_device) {
            for (const auto& [place, run] : pairs_of(device, std::move(runs))) {
                const ExchangedRun& ours = waiting_[place];
                const ClockOffset offset =
                    clock_offset(ours.exchanges, ours.first_gpu_ns, ours.last_gpu_ns, run);
                // The bounds of one run hold for all runs of its round.
                ClockOffset& known =
                    measurements
                        .try_emplace({ours.round, device}, ClockMeasurement{device, middle_ns(run), offset})
                        .first->second.offset;
                known.min_ns = std::max(known.min_ns, offset.min_ns);
                known.max_ns = std::min(known.max_ns, offset.max_ns);
                done.insert(place);
            }
        }
        for (const std::size_t place : done)
            waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(place));
        if (waiting_.size() > kMaxWaiting)  // CUPTI has lost the runs that it has not reported by now
            waiting_.erase(waiting_.begin(), waiting_.end() - kMaxWaiting);
        std::vector<ClockMeasurement> all;
        for (const auto& [key, measurement] : measurements) {
            const auto [least, most] = measurement.offset;
            if (least > most + kContradictionNs) continue;
            offsets_[measurement.device] = (least + most) / 2;
            all.push_back(measurement);
        }
        return all;
    }

  private:
    static constexpr double kFarNs = 5'000'000;     // no run is that long: it must be another one
    static constexpr double kSpreadNs = 1'000'000;  // runs within this time have the same offset
    static constexpr double kContradictionNs =
        2000;  // if bounds contradict each other by more, the pairs are wrong
    static constexpr std::size_t kMaxWaiting = 1024;

    static std::uint64_t middle_ns(const ProbeRun& run) {
        return run.start_ns + (run.end_ns - run.start_ns) / 2;
    }

    static double difference(const ExchangedRun& ours, const ProbeRun& reported) {
        return static_cast<double>(static_cast<std::int64_t>(ours.middle_ns() - middle_ns(reported)));
    }

    struct Pair {
        std::size_t waiting;  ///< index in `waiting_`
        ProbeRun run;
    };
    std::vector<Pair> pairs_of(int device, std::vector<ProbeRun> reported) const {
        std::sort(reported.begin(), reported.end(),
                  [](const ProbeRun& a, const ProbeRun& b) { return a.start_ns < b.start_ns; });
        std::vector<std::size_t> ours;
        for (std::size_t i = 0; i < waiting_.size(); ++i) {
            if (waiting_[i].device == device) ours.push_back(i);
        }
        std::vector<Pair> pairs = pairs_in_order(ours, reported);
        return !pairs.empty() ? pairs : nearest_pairs(device, std::move(ours), reported);
    }
    /// Pairs CUPTI's runs and ours in time order, if their numbers and distances agree.
    std::vector<Pair> pairs_in_order(const std::vector<std::size_t>& ours,
                                     const std::vector<ProbeRun>& reported) const {
        std::vector<Pair> pairs;
        if (ours.size() != reported.size() || ours.size() < 2) return pairs;
        const double first = difference(waiting_[ours[0]], reported[0]);
        for (std::size_t i = 0; i < ours.size(); ++i) {
            if (std::abs(difference(waiting_[ours[i]], reported[i]) - first) > kSpreadNs) return {};
            pairs.push_back({ours[i], reported[i]});
        }
        return pairs;
    }
    std::vector<Pair> nearest_pairs(int device, std::vector<std::size_t> ours,
                                    const std::vector<ProbeRun>& reported) const {
        std::vector<Pair> pairs;
        const double known = known_offset(device);
        for (const ProbeRun& run : reported) {
            const auto distance = [&](std::size_t i) {
                return std::abs(difference(waiting_[i], run) - known);
            };
            const auto nearest =
                std::min_element(ours.begin(), ours.end(),
                                 [&](std::size_t a, std::size_t b) { return distance(a) < distance(b); });
            if (nearest == ours.end() || distance(*nearest) > kFarNs) continue;
            pairs.push_back({*nearest, run});
            ours.erase(nearest);
        }
        return pairs;
    }
    /// The correction of that device's times at the last measurement.
    double known_offset(int device) const {
        const auto found = offsets_.find(device);
        return found != offsets_.end() ? found->second : 0;
    }

    std::vector<ExchangedRun> waiting_;  ///< runs that CUPTI has not reported yet
    std::map<int, double> offsets_;
};

}  // namespace marey::cuda
