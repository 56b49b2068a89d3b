// clock_simulation_fixture.h: hosts whose clocks drift and wander, and links between them, for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include <marey/host_clocks.h>

namespace marey {

/// Seconds of true time to nanoseconds of a host's clock.
class SimulatedClock {
  public:
    /// `wander`: change of the rate per square root of a second; 0: the rate is constant.
    SimulatedClock(double offset_ns, double rate, double wander, double seconds, std::mt19937_64& random)
        : offset_ns_(offset_ns) {
        std::normal_distribution<double> step(0, 1);
        double ahead = 0;
        for (double t = 0; t <= seconds + 2; t += 1) {
            ahead_ns_.push_back(ahead);
            ahead += rate * 1e9;
            rate += wander * step(random);
        }
    }
    /// Without the offset, to keep the precision of a double.
    double elapsed_ns(double seconds) const {
        const double whole = std::floor(std::clamp(seconds, 0.0, static_cast<double>(ahead_ns_.size() - 2)));
        const auto i = static_cast<std::size_t>(whole);
        return seconds * 1e9 + ahead_ns_[i] + (seconds - whole) * (ahead_ns_[i + 1] - ahead_ns_[i]);
    }
    std::int64_t ns(double seconds) const {
        return static_cast<std::int64_t>(offset_ns_) + std::llround(elapsed_ns(seconds));
    }

  private:
    double offset_ns_;
    std::vector<double> ahead_ns_;  ///< of true time, by second
};

/// Delays of one direction of a link: a fastest one, and a heavy tail.
struct SimulatedLink {
    double fastest_s = 25e-6;
    double delay(std::mt19937_64& random) const {
        const double tail = std::exponential_distribution<double>(1)(random);
        const bool is_slow = random() % 10 == 0;
        return fastest_s * (1 + 0.3 * tail + (is_slow ? 5 * tail * tail : 0));
    }
};

/// A burst of exchanges that begins at `seconds`.
inline void add_burst(std::vector<ClockEvidence>& evidence, std::uint32_t asking, std::uint32_t answering,
                      const std::vector<SimulatedClock>& clocks, const SimulatedLink& there,
                      const SimulatedLink& back, double seconds, int exchanges, std::mt19937_64& random) {
    for (int i = 0; i < exchanges; ++i) {
        const double arrived = seconds + there.delay(random);
        const double answered = arrived + 1e-6;
        const double received = answered + back.delay(random);
        add_clock_exchange(evidence, asking, answering, clocks[asking].ns(seconds),
                           clocks[answering].ns(arrived), clocks[answering].ns(answered),
                           clocks[asking].ns(received));
        seconds = received + 1e-6;
    }
}

}  // namespace marey
