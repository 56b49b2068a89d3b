// pair_clock.cpp: the relation between the clocks of two hosts: lines in windows, joined at knots.
#include "collect/pair_clock.h"

#include <algorithm>
#include <cmath>

namespace marey {
namespace {

constexpr std::int64_t kLargestTimeNs = std::int64_t{1}
                                        << 60;  // sums and differences of four stay in 64 bits
constexpr double kWindowNs = 90e9;  // around a knot. Longer windows follow a wandering rate too late
constexpr double kKnotDistanceNs = 30e9;
constexpr double kShortestWindowNs = 1e9;
constexpr std::uint64_t kMaxLeftOut = 16;  // of one kind, before all of that kind are
constexpr const char* kMethods[] = {"exchange", "message", "collective", "wall_clock"};

/// How far a clock whose rate wanders by 0.02 ppm per square root of a second leaves a line of that length:
/// three standard deviations in the middle, where it is largest.
double wander_ns(double length_ns) {
    const double seconds = length_ns * 1e-9;
    return 3 * 0.02e-6 * 0.1 * seconds * std::sqrt(seconds) * 1e9;
}

std::int64_t whole_ns(double ns) {
    return std::llround(std::clamp(ns, -4e18, 4e18));
}

}  // namespace

void PairClock::add(const ClockEvidence& fact, bool forward) {
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

void PairClock::collect(std::vector<Fact>& facts, const Window& window, std::vector<LineBound>& bounds,
                        std::vector<Fact*>* used) const {
    auto fact = std::partition_point(facts.begin(), facts.end(),
                                     [&](const Fact& each) { return relative(each.x) < window.begin; });
    for (; fact != facts.end() && relative(fact->x) <= window.end; ++fact) {
        if (fact->is_left_out || is_distrusted_[static_cast<std::size_t>(fact->kind)]) continue;
        bounds.push_back({relative(fact->x), static_cast<double>(fact->y - first_y_)});
        if (used != nullptr) used->push_back(&*fact);
    }
}

ClockLines PairClock::lines_in(const Window& window) {
    std::vector<LineBound> upper, lower;
    collect(upper_, window, upper);
    collect(lower_, window, lower);
    return {upper, lower};
}

/// Leaves out one of the facts that the best line violates most: of the weakest kind, otherwise the one that
/// explains most of the violation. False if there is none.
bool PairClock::leave_out_worst(const Window& window, const ClockLines& lines) {
    std::vector<LineBound> bounds[2];
    std::vector<Fact*> facts[2];
    collect(upper_, window, bounds[0], &facts[0]);
    collect(lower_, window, bounds[1], &facts[1]);
    std::vector<Fact*> worst;
    for (int side = 0; side < 2; ++side) {
        for (std::size_t i = 0; i < bounds[side].size(); ++i) {
            const double above = lines.at(bounds[side][i].x) - bounds[side][i].y;
            if ((side == 0 ? above : -above) >= lines.violation() - 0.5) worst.push_back(facts[side][i]);
        }
    }
    if (worst.empty()) return false;
    const auto weaker = [](const Fact* a, const Fact* b) { return a->kind < b->kind; };
    const ClockEvidenceKind weakest = (*std::max_element(worst.begin(), worst.end(), weaker))->kind;
    Fact* chosen = nullptr;
    double least = 0;
    for (Fact* const fact : worst) {
        if (fact->kind != weakest) continue;
        fact->is_left_out = true;
        const double rest = lines_in(window).violation();
        fact->is_left_out = false;
        if (chosen != nullptr && rest >= least) continue;
        chosen = fact;
        least = rest;
    }
    chosen->is_left_out = true;
    ++contradictions_;
    const auto kind = static_cast<std::size_t>(weakest);
    if (++left_out_[kind] > kMaxLeftOut) {
        contradictions_ += count_[kind] - left_out_[kind];
        is_distrusted_[kind] = true;
    }
    return true;
}

/// The lines of the longest window around x that has any.
ClockLines PairClock::lines_around(double x) {
    double length = kWindowNs;
    for (;;) {
        const Window window{x - length / 2, x + length / 2};
        ClockLines lines = lines_in(window);
        if (lines.is_feasible() || lines.violation() <= 0) return lines;
        // Rates that wander more than usual do not contradict each other yet.
        if (length / 2 >= kShortestWindowNs && lines.violation() <= 10 * wander_ns(length)) {
            length /= 2;
        } else if (!leave_out_worst(window, lines)) {
            return lines;
        }
    }
}

void PairClock::add_knot(HostClock& clock, std::int64_t at, const ClockLines& lines) const {
    const double x = relative(at), y = lines.at(x);
    const double error = std::max(lines.highest_at(x) - y, y - lines.lowest_at(x));
    const ClockKnot knot{at, first_y_ + whole_ns(y), whole_ns(std::ceil(error)) + 1};
    const double growth = std::max(lines.highest_rate() - lines.rate(), lines.rate() - lines.lowest_rate());
    clock.last_rate = lines.rate();
    clock.last_growth = growth;
    if (clock.knots.empty()) {
        clock.first_rate = lines.rate();
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

HostClock PairClock::fit_knots(const std::vector<std::int64_t>& times) {
    HostClock clock;
    for (auto at = times.begin(); at != times.end();) {
        const double x = relative(*at);
        const ClockLines lines = lines_around(x);
        if (lines.is_feasible()) add_knot(clock, *at, lines);
        if (*at == times.back()) break;
        const auto is_near = [&](std::int64_t other) { return relative(other) < x + kKnotDistanceNs; };
        at = std::min(std::partition_point(at, times.end(), is_near), times.end() - 1);
    }
    return clock;
}

HostClock PairClock::fit() {
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
    std::uint64_t before = 0;
    do {  // earlier windows may have used facts that a later one left out
        before = contradictions_;
        clock = fit_knots(times);
    } while (contradictions_ != before);
    for (const ClockKnot& knot : clock.knots) clock.error_ns = std::max(clock.error_ns, knot.error_ns);
    for (std::size_t kind = kClockEvidenceKinds; kind-- != 0;) {
        clock.evidence[kind] = is_distrusted_[kind] ? 0 : count_[kind] - left_out_[kind];
        if (clock.evidence[kind] > 0) clock.method = kMethods[kind];
    }
    return clock;
}

}  // namespace marey
