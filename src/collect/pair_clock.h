// pair_clock.h: the relation between the clocks of two hosts, from facts about the order of events.
#pragma once

#include <cstdint>
#include <vector>

#include <marey/host_clocks.h>

#include "collect/clock_lines.h"

namespace marey {

/// Collects the facts about two hosts, then fits. x is the time of the first host; y is the time of the
/// second minus that of the first.
class PairClock {
  public:
    /// `forward`: the first host has the earlier event.
    void add(const ClockEvidence& fact, bool forward);
    /// The first host's clock, related to the second's; without knots if there is too little evidence.
    HostClock fit();
    /// The number of facts that fit() left out, because they contradict others.
    std::uint64_t contradictions() const noexcept { return contradictions_; }

  private:
    struct Fact {
        std::int64_t x;
        std::int64_t y;
        ClockEvidenceKind kind;
        bool is_left_out = false;
    };
    struct Window {
        double begin;
        double end;
    };
    void collect(std::vector<Fact>& facts, const Window& window, std::vector<LineBound>& bounds,
                 std::vector<Fact*>* used = nullptr) const;
    ClockLines lines_in(const Window& window);
    ClockLines lines_around(double x);
    bool leave_out_worst(const Window& window, const ClockLines& lines);
    void add_knot(HostClock& clock, std::int64_t at, const ClockLines& lines) const;
    HostClock fit_knots(const std::vector<std::int64_t>& times);
    double relative(std::int64_t x) const noexcept { return static_cast<double>(x - first_x_); }

    std::vector<Fact> upper_, lower_;
    std::uint64_t count_[kClockEvidenceKinds] = {};
    std::uint64_t left_out_[kClockEvidenceKinds] = {};
    bool is_distrusted_[kClockEvidenceKinds] = {};
    std::uint64_t contradictions_ = 0;
    std::int64_t first_x_ = 0, first_y_ = 0;
};

}  // namespace marey
