// pair_clock.h: the relation between the clocks of two hosts, from facts about the order of events.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
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
    void add(const ClockEvidence& fact, bool forward) {
        const auto fits = [](std::int64_t ns) { return ns >= -kLargestTimeNs && ns <= kLargestTimeNs; };
        if (!fits(fact.earlier_ns) || !fits(fact.later_ns)) {
            ++contradictions_;
            return;
        }
        ++count_[static_cast<std::size_t>(fact.kind)];
        if (forward) {
            upper_.push_back({fact.earlier_ns, fact.later_ns - fact.earlier_ns, fact.kind});
        } else {
            lower_.push_back({fact.later_ns, fact.earlier_ns - fact.later_ns, fact.kind});
        }
    }
    /// The first host's clock, related to the second's; without knots if there is too little evidence.
    HostClock fit() {
        if (upper_.empty() || lower_.empty()) return {};
        const auto by_time = [](const Fact& a, const Fact& b) { return a.x < b.x; };
        std::sort(upper_.begin(), upper_.end(), by_time);
        std::sort(lower_.begin(), lower_.end(), by_time);
        first_x_ = std::min(upper_.front().x, lower_.front().x);
        first_y_ = upper_.front().y;
        std::vector<std::int64_t> times;
        for (const auto* const facts : {&upper_, &lower_})
            for (const Fact& fact : *facts) times.push_back(fact.x);
        std::sort(times.begin(), times.end());

        HostClock clock;
        do {  // earlier windows may have used facts that a later one left out
            is_changed_ = is_uncertain_ = false;
            clock = fit_knots(times);
        } while (is_changed_);
        for (const ClockKnot& knot : clock.knots) clock.error_ns = std::max(clock.error_ns, knot.error_ns);
        for (std::size_t kind = kClockEvidenceKinds; kind-- != 0;) {
            clock.evidence[kind] = is_distrusted_[kind] ? 0 : count_[kind] - left_out_[kind];
            if (clock.evidence[kind] > 0) clock.method = kMethods[kind];
        }
        return clock;
    }
    /// The number of facts that fit() left out, because they contradict others.
    std::uint64_t contradictions() const noexcept { return contradictions_; }
    /// Which facts those are, or that nothing tells which of them are wrong. `first`, `second`: the hosts.
    std::string contradiction_text(const std::string& first, const std::string& second) const {
        std::int64_t begin = kLargestTimeNs, end = -kLargestTimeNs;
        for (const std::vector<Fact>* const side : {&upper_, &lower_}) {
            for (const Fact& fact : *side) {
                if (is_used(fact)) continue;
                begin = std::min(begin, fact.x);
                end = std::max(end, fact.x);
            }
        }
        const auto seconds = [](std::int64_t ns) {
            char text[32];
            std::snprintf(text, sizeof text, "%.3f", static_cast<double>(ns) * 1e-9);
            return std::string(text);
        };
        std::string kinds;
        for (std::size_t kind = 0; kind < kClockEvidenceKinds; ++kind) {
            const std::uint64_t count = is_distrusted_[kind] ? count_[kind] : left_out_[kind];
            if (count == 0) continue;
            kinds += (kinds.empty() ? "" : ", ") + std::to_string(count) + " of " +
                     std::to_string(count_[kind]) + " from " + kKindNames[kind];
        }
        if (kinds.empty()) kinds = "impossible times";
        std::string text = first + " and " + second + ": " + kinds;
        if (begin <= end) {
            text += " (at " + seconds(begin) + (end == begin ? "" : " to " + seconds(end)) +
                    " s of the clock of " + first + ")";
        }
        return text + (is_uncertain_
                           ? ", or those that they contradict: too few agree to tell which are wrong, "
                             "and the error covers both"
                           : "");
    }

  private:
    static constexpr std::int64_t kLargestTimeNs = std::int64_t{1}
                                                   << 60;  // sums and differences of four stay in 64 bits
    static constexpr double kWindowNs =
        90e9;  // around a knot. Longer windows follow a wandering rate too late
    static constexpr double kKnotDistanceNs = 30e9;
    static constexpr double kShortestWindowNs = 1e9;
    static constexpr std::uint64_t kMaxLeftOut = 16;  // of one kind, before all of that kind are
    /// Observations that were left out may still be right if those that they contradict are at most so many
    /// times more.
    static constexpr std::size_t kMajority = 3;
    static constexpr const char* kMethods[] = {"exchange", "message", "collective", "wall_clock"};
    static constexpr const char* kKindNames[] = {"exchanges", "messages", "collectives", "wall clocks"};

    /// How far a clock whose rate wanders by 0.02 ppm per square root of a second leaves a line of that
    /// length: three standard deviations in the middle, where it is largest.
    static double wander_ns(double length_ns) {
        const double seconds = length_ns * 1e-9;
        return 3 * 0.02e-6 * 0.1 * seconds * std::sqrt(seconds) * 1e9;
    }

    static std::int64_t whole_ns(double ns) { return std::llround(std::clamp(ns, -4e18, 4e18)); }

    struct Fact {
        std::int64_t x;
        std::int64_t y;
        ClockEvidenceKind kind;
        bool is_left_out = false;
        bool is_protected = false;  ///< it is right: others are left out instead
        bool is_refuted = false;    ///< a clear majority contradicts it
    };
    using Observations = std::vector<Fact*>;
    struct Window {
        double begin;
        double end;
    };
    enum class Verdict { Loses, Ties, Wins };
    void collect(std::vector<Fact>& facts, const Window& window, std::vector<LineBound>& bounds,
                 Observations* used = nullptr) const {
        auto fact = std::partition_point(facts.begin(), facts.end(),
                                         [&](const Fact& each) { return relative(each.x) < window.begin; });
        for (; fact != facts.end() && relative(fact->x) <= window.end; ++fact) {
            if (!is_used(*fact)) continue;
            bounds.push_back({relative(fact->x), static_cast<double>(fact->y - first_y_)});
            if (used != nullptr) used->push_back(&*fact);
        }
    }
    bool is_used(const Fact& fact) const noexcept {
        return !fact.is_left_out && !is_distrusted_[static_cast<std::size_t>(fact.kind)];
    }
    ClockLines lines_in(const Window& window) {
        std::vector<LineBound> upper, lower;
        collect(upper_, window, upper);
        collect(lower_, window, lower);
        return {upper, lower};
    }
    /// The lines of the longest window around x that has any.
    std::pair<Window, ClockLines> lines_around(double x) {
        double length = kWindowNs;
        for (;;) {
            const Window window{x - length / 2, x + length / 2};
            ClockLines lines = lines_in(window);
            if (lines.is_feasible() || lines.violation() <= 0) return {window, lines};
            // Rates that wander more than usual do not contradict each other yet.
            if (length / 2 >= kShortestWindowNs && lines.violation() <= 10 * wander_ns(length)) {
                length /= 2;
            } else if (Fact* const fact = worst(window, lines); fact != nullptr) {
                fact->is_left_out = true;
                count_left_out(*fact);
            } else {
                return {window, lines};
            }
        }
    }
    /// One of the facts that the best line violates most: of the weakest kind, otherwise the one that
    /// contradicts most others, otherwise the one that explains most of the violation. Null if there is none,
    /// or if all of them are protected.
    Fact* worst(const Window& window, const ClockLines& lines) {
        std::vector<LineBound> bounds[2];
        Observations facts[2];
        collect(upper_, window, bounds[0], &facts[0]);
        collect(lower_, window, bounds[1], &facts[1]);
        struct Candidate {
            Fact* fact;
            int side;
            double above;  ///< of the best line
            std::ptrdiff_t opponents;
        };
        std::vector<Candidate> worst;
        std::vector<double> distances[2];  // from the best line, rising
        ClockEvidenceKind weakest{};
        for (int side = 0; side < 2; ++side) {
            for (std::size_t i = 0; i < bounds[side].size(); ++i) {
                const double above = bounds[side][i].y - lines.at(bounds[side][i].x);
                distances[side].push_back(above);
                Fact* const fact = facts[side][i];
                if ((side == 0 ? -above : above) < lines.violation() - 0.5 || fact->is_protected) continue;
                worst.push_back({fact, side, above, 0});
                weakest = std::max(weakest, fact->kind);
            }
            std::sort(distances[side].begin(), distances[side].end());
        }
        std::erase_if(worst, [&](const Candidate& each) { return each.fact->kind != weakest; });
        std::ptrdiff_t most = 0;
        for (Candidate& each : worst) {  // upper bounds below it, or lower bounds above it
            const std::vector<double>& others = distances[1 - each.side];
            const auto place = std::upper_bound(others.begin(), others.end(), each.above);
            each.opponents = each.side == 0 ? others.end() - place : place - others.begin();
            most = std::max(most, each.opponents);
        }
        std::erase_if(worst, [&](const Candidate& each) { return each.opponents < most; });
        Fact* chosen = nullptr;
        double least = 0;
        for (const Candidate& each : worst) {
            each.fact->is_left_out = true;
            const double rest = lines_in(window).violation();
            each.fact->is_left_out = false;
            if (chosen != nullptr && rest >= least) continue;
            chosen = each.fact;
            least = rest;
        }
        return chosen;
    }
    void count_left_out(const Fact& fact) {
        is_changed_ = true;
        ++contradictions_;
        const auto kind = static_cast<std::size_t>(fact.kind);
        if (++left_out_[kind] > kMaxLeftOut) {
            contradictions_ += count_[kind] - left_out_[kind];
            is_distrusted_[kind] = true;
        }
    }
    /// Whether facts that were left out may be the right ones. `instead`: those to leave out if they are,
    /// with the lines that then fit. Among facts of the strongest kind that is in question, a clear majority
    /// decides; if there is none, the weaker kinds do, the strongest of them first.
    Verdict weigh_rival(const Window& window, const Observations& rival, Observations& instead,
                        std::vector<ClockLines>& lines) {
        for (Fact* const fact : rival) {
            fact->is_left_out = false;
            fact->is_protected = true;
        }
        Verdict verdict = Verdict::Loses;
        ClockLines fitted = lines_in(window);
        while (!fitted.is_feasible() && instead.size() <= (kMajority + 1) * rival.size()) {
            Fact* const fact = worst(window, fitted);
            if (fact == nullptr) break;
            fact->is_left_out = true;
            instead.push_back(fact);
            fitted = lines_in(window);
        }
        if (fitted.is_feasible() && !instead.empty()) {  // otherwise its opponents are in other windows
            lines.push_back(fitted);
            std::size_t for_rival[kClockEvidenceKinds] = {}, against[kClockEvidenceKinds] = {};
            for (const Fact* const fact : rival) ++for_rival[static_cast<std::size_t>(fact->kind)];
            for (const Fact* const fact : instead) ++against[static_cast<std::size_t>(fact->kind)];
            verdict = Verdict::Ties;
            for (std::size_t kind = 0; kind < kClockEvidenceKinds && verdict == Verdict::Ties; ++kind) {
                if (against[kind] > kMajority * for_rival[kind]) verdict = Verdict::Loses;
                if (for_rival[kind] > kMajority * against[kind]) verdict = Verdict::Wins;
            }
        }
        if (verdict == Verdict::Wins) return verdict;
        for (Fact* const fact : instead) fact->is_left_out = false;
        for (Fact* const fact : rival) {
            fact->is_left_out = true;
            fact->is_protected = false;
        }
        return verdict;
    }
    /// Weighs a rival and acts on the verdict: a tie adds its lines.
    Verdict decide(const Window& window, const Observations& rival, std::vector<ClockLines>& lines) {
        Observations instead;
        std::vector<ClockLines> others;
        const Verdict verdict = weigh_rival(window, rival, instead, others);
        if (verdict == Verdict::Wins) {
            contradictions_ -= rival.size();
            for (const Fact* const fact : rival) --left_out_[static_cast<std::size_t>(fact->kind)];
            for (const Fact* const fact : instead) count_left_out(*fact);
        } else if (verdict == Verdict::Ties) {
            is_uncertain_ = true;
            lines.insert(lines.end(), others.begin(), others.end());
        } else if (rival.size() == 1 && !instead.empty()) {
            rival.front()->is_refuted = is_changed_ = true;
        }
        return verdict;
    }
    /// Observations that were left out may be the right ones.
    void weigh_rivals(const Window& window, std::vector<ClockLines>& lines) {
        for (std::vector<Fact>* const facts :
             {&upper_, &lower_}) {  // those of one side agree with each other
            Observations rival;
            for (Fact& fact : *facts) {
                const double x = relative(fact.x);
                if (fact.is_left_out && !fact.is_refuted && x >= window.begin && x <= window.end &&
                    !is_distrusted_[static_cast<std::size_t>(fact.kind)])
                    rival.push_back(&fact);
            }
            if (rival.empty()) continue;
            const Verdict together = decide(window, rival, lines);
            if (together == Verdict::Wins) return;
            if (together == Verdict::Ties || rival.size() == 1) continue;
            for (Fact* const fact : rival) {
                if (decide(window, {fact}, lines) == Verdict::Wins) return;
            }
        }
    }
    /// `lines`: those of the fit, then those that are not excluded.
    void add_knot(HostClock& clock, std::int64_t at, const std::vector<ClockLines>& lines) const {
        const double x = relative(at), y = lines.front().at(x), rate = lines.front().rate();
        double error = 0, growth = 0;
        for (const ClockLines& each : lines) {
            error = std::max({error, each.highest_at(x) - y, y - each.lowest_at(x)});
            growth = std::max({growth, each.highest_rate() - rate, rate - each.lowest_rate()});
        }
        const ClockKnot knot{at, first_y_ + whole_ns(y), whole_ns(std::ceil(error)) + 1};
        clock.last_rate = rate;
        clock.last_growth = growth;
        if (clock.knots.empty()) {
            clock.first_rate = rate;
            clock.first_growth = growth;
        } else if (const auto gap = static_cast<double>(at - clock.knots.back().at_ns); gap > kWindowNs) {
            const ClockKnot from = clock.knots.back();
            for (const double part : {0.25, 0.5, 0.75}) {
                const auto between = [part](std::int64_t a, std::int64_t b) {
                    return a + whole_ns(part * static_cast<double>(b - a));
                };
                const double wander = wander_ns(gap) * std::pow(4 * part * (1 - part), 1.5);
                clock.knots.push_back({between(from.at_ns, at), between(from.offset_ns, knot.offset_ns),
                                       between(from.error_ns, knot.error_ns) + whole_ns(std::ceil(wander))});
            }
        }
        clock.knots.push_back(knot);
    }
    HostClock fit_knots(const std::vector<std::int64_t>& times) {
        HostClock clock;
        for (auto at = times.begin(); at != times.end();) {
            const double x = relative(*at);
            const auto [window, fitted] = lines_around(x);
            if (fitted.is_feasible()) {
                std::vector<ClockLines> lines = {fitted};
                if (contradictions_ > 0) weigh_rivals(window, lines);
                add_knot(clock, *at, lines);
            }
            if (*at == times.back()) break;
            const auto is_near = [&](std::int64_t other) { return relative(other) < x + kKnotDistanceNs; };
            at = std::min(std::partition_point(at, times.end(), is_near), times.end() - 1);
        }
        return clock;
    }
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
