// job_fixture.h: a simulated training job: ranks on several hosts, with a planted cause of delay, for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "analyze/trace_fixture.h"

namespace marey {

enum class PlantedCause : std::uint8_t { None, Input, Kernels, HostCode, Link, Imbalance };

struct JobSettings {
    int ranks = 64;
    int ranks_per_host = 8;
    int steps = 12;
    PlantedCause cause = PlantedCause::None;
    int slow_rank = 0;
    double delay_ns = 0;         ///< per step, of the slow rank
    double noise = 0.02;         ///< of the length of each piece of work
    bool has_exchanges = true;   ///< the first rank of each host compares its clock with that of rank 0
    double transfer_ns = 100e3;  ///< of each collective
    double link_ns = 20e3;       ///< fastest delay of an exchange's message
};

/// One trace per rank. Clocks of hosts have offsets of hours and rates of up to 20 ppm.
class SimulatedJob {
  public:
    SimulatedJob(const JobSettings& settings, std::uint64_t seed) : settings_(settings), random_(seed) {
        std::uniform_real_distribution<double> offset(1e12, 1e14), rate(-20e-6, 20e-6);
        const int hosts = (settings.ranks + settings.ranks_per_host - 1) / settings.ranks_per_host;
        for (int host = 0; host < hosts; ++host)
            clocks_.push_back({std::floor(offset(random_)), rate(random_)});
        now_.assign(static_cast<std::size_t>(settings.ranks), 1e6);
        steps_.resize(now_.size());
    }

    std::vector<Trace> traces() {
        for (int step = 0; step < settings_.steps; ++step) run_step(step);
        std::vector<Trace> result;
        for (int rank = 0; rank < settings_.ranks; ++rank) result.push_back(trace_of(rank));
        return result;
    }

    int host_of(int rank) const { return rank / settings_.ranks_per_host; }
    /// A time on the clock of a rank's host.
    std::int64_t local(int rank, double ns) const {
        const HostClockModel& clock = clocks_[static_cast<std::size_t>(host_of(rank))];
        return static_cast<std::int64_t>(clock.offset_ns) + std::llround(ns * (1 + clock.rate));
    }
    double true_ns(int rank, std::int64_t local_ns) const {
        const HostClockModel& clock = clocks_[static_cast<std::size_t>(host_of(rank))];
        return (static_cast<double>(local_ns) - clock.offset_ns) / (1 + clock.rate);
    }

  private:
    struct HostClockModel {
        double offset_ns, rate;
    };
    static constexpr int kCollectives = 3;

    double noisy(double ns) {
        return ns * (1 + settings_.noise * std::normal_distribution<double>(0, 1)(random_));
    }

    void run_step(int step) {
        const PlantedCause cause = settings_.cause;
        const auto count = static_cast<std::size_t>(settings_.ranks);
        std::vector<double> start = now_;
        std::vector<std::vector<RangeSpec>> inside(count);
        const auto add = [&](int rank, const char* name, double ns) {
            double& now = now_[static_cast<std::size_t>(rank)];
            const std::int64_t from = local(rank, now), to = local(rank, now + ns);
            inside[static_cast<std::size_t>(rank)].push_back({name, from, to - from});
            now += ns;
        };
        for (int rank = 0; rank < settings_.ranks; ++rank) {
            const bool is_slow = rank == settings_.slow_rank;
            add(rank, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
                noisy(300e3) + (is_slow && cause == PlantedCause::Input ? settings_.delay_ns : 0));
        }
        for (int part = 0; part < kCollectives; ++part) {
            for (int rank = 0; rank < settings_.ranks; ++rank) {
                const bool is_slow = rank == settings_.slow_rank;
                const double extra = is_slow ? settings_.delay_ns / kCollectives : 0;
                double compute = noisy(2e6) + (cause == PlantedCause::Kernels ? extra : 0);
                // Work that differs in each step, and always on other ranks.
                if (cause == PlantedCause::Imbalance)
                    compute *= 0.6 + 0.8 * std::uniform_real_distribution<double>(0, 1)(random_);
                add(rank, "forward.py(3): prepare",
                    noisy(200e3) + (cause == PlantedCause::HostCode ? extra : 0));
                add(rank, "aten::mm", compute);
            }
            const double last = *std::max_element(now_.begin(), now_.end());
            for (int rank = 0; rank < settings_.ranks; ++rank) {
                double& now = now_[static_cast<std::size_t>(rank)];
                double left = last + noisy(settings_.transfer_ns);
                if (rank == settings_.slow_rank && cause == PlantedCause::Link)
                    left += settings_.delay_ns / kCollectives;
                add(rank, "gloo:all_reduce", left - now);
            }
        }
        for (int rank = 0; rank < settings_.ranks; ++rank) {
            const auto i = static_cast<std::size_t>(rank);
            const std::int64_t from = local(rank, start[i]);
            steps_[i].push_back({"ProfilerStep#" + std::to_string(step), from, local(rank, now_[i]) - from,
                                 std::move(inside[i])});
        }
    }

    Trace trace_of(int rank) {
        TraceFixture fixture;
        const auto i = static_cast<std::size_t>(rank);
        TraceData& data = fixture.data();
        data.processes[0].pid = 1000 + rank;
        data.processes[0].node = rank;
        data.processes[0].host = fixture.string("node" + std::to_string(host_of(rank)));
        data.processes[0].clock = fixture.string("boot" + std::to_string(host_of(rank)) + "/1");
        fixture.site("aten::mm", Scope::Function);
        fixture.thread("main", steps_[i]);
        data.clock.max_error_ns = 30;
        if (settings_.has_exchanges && rank > 0 && rank % settings_.ranks_per_host == 0) {
            for (const double at : {0.0, now_[i]}) {
                for (int k = 0; k < 8; ++k) add_exchange(fixture, rank, at + k * 100e3);
            }
        }
        return fixture.trace();
    }

    void add_exchange(TraceFixture& fixture, int rank, double at) {
        std::exponential_distribution<double> extra(1 / (0.2 * settings_.link_ns));
        const double arrived = at + settings_.link_ns + extra(random_), answered = arrived + 500,
                     received = answered + settings_.link_ns + extra(random_);
        fixture.data().clock_exchanges.push_back({0, fixture.string("node0"), local(rank, at),
                                                  local(0, arrived), local(0, answered),
                                                  local(rank, received)});
    }

    JobSettings settings_;
    std::mt19937_64 random_;
    std::vector<HostClockModel> clocks_;
    std::vector<double> now_;                    ///< true time, by rank
    std::vector<std::vector<RangeSpec>> steps_;  ///< by rank
};

}  // namespace marey
