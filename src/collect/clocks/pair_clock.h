// pair_clock.h: the relation between the clocks of two hosts, from facts about the order of events.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <marey/host_clocks.h>

#include "collect/clocks/clock_lines.h"

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
    /// Which facts those are, or that nothing tells which of them are wrong. `first`, `second`: the hosts.
    std::string contradiction_text(const std::string& first, const std::string& second) const;

  private:
    struct Fact {
        std::int64_t x;
        std::int64_t y;
        ClockEvidenceKind kind;
        bool is_left_out = false;
        bool is_protected = false;  ///< it is right: others are left out instead
        bool is_refuted = false;    ///< a clear majority contradicts it
    };
    using Facts = std::vector<Fact*>;
    struct Window {
        double begin;
        double end;
    };
    enum class Verdict { Loses, Ties, Wins };
    void collect(std::vector<Fact>& facts, const Window& window, std::vector<LineBound>& bounds,
                 Facts* used = nullptr) const;
    bool is_used(const Fact& fact) const noexcept {
        return !fact.is_left_out && !is_distrusted_[static_cast<std::size_t>(fact.kind)];
    }
    ClockLines lines_in(const Window& window);
    std::pair<Window, ClockLines> lines_around(double x);
    Fact* worst(const Window& window, const ClockLines& lines);
    void count_left_out(const Fact& fact);
    Verdict weigh_rival(const Window& window, const Facts& rival, Facts& instead,
                        std::vector<ClockLines>& lines);
    Verdict decide(const Window& window, const Facts& rival, std::vector<ClockLines>& lines);
    void weigh_rivals(const Window& window, std::vector<ClockLines>& lines);
    void add_knot(HostClock& clock, std::int64_t at, const std::vector<ClockLines>& lines) const;
    HostClock fit_knots(const std::vector<std::int64_t>& times);
    double relative(std::int64_t x) const noexcept { return static_cast<double>(x - first_x_); }

    std::vector<Fact> upper_, lower_;
    std::uint64_t count_[kClockEvidenceKinds] = {};
    std::uint64_t left_out_[kClockEvidenceKinds] = {};
    bool is_distrusted_[kClockEvidenceKinds] = {};
    std::uint64_t contradictions_ = 0;
    bool is_changed_ = false;    ///< the facts that are left out, since the fit began
    bool is_uncertain_ = false;  ///< nothing tells which facts are wrong
    std::int64_t first_x_ = 0, first_y_ = 0;
};

}  // namespace marey
