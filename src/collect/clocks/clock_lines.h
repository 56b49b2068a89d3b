// clock_lines.h: all lines between two sets of points, by convex hulls and linear programming in two
// unknowns.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace marey {

/// The largest difference of two clocks' rates that counts as possible.
inline constexpr double kMaxClockRate = 1e-3;

/// A bound for the line y = offset + rate * x at one x.
struct LineBound {
    double x = 0;
    double y = 0;
};

/// The lines that lie on or below every upper bound and on or above every lower bound, with a rate of at most
/// kMaxClockRate in size. They form a polygon in the plane of rate and offset.
class ClockLines {
  public:
    /// Bounds in order of x; either may be empty.
    ClockLines(std::span<const LineBound> upper, std::span<const LineBound> lower);

    /// Whether both sets have bounds and some line fits between them.
    bool is_feasible() const noexcept { return !corners_.empty(); }
    /// The distance by which the best line misses its worst bounds; 0 or less if a line fits.
    double violation() const noexcept { return violation_; }
    /// The feasible line with the widest margin, or the best one if none is feasible. Where the bounds do not
    /// determine the rate, the rate nearest to 0.
    double offset() const noexcept { return offset_; }
    double rate() const noexcept { return rate_; }
    double at(double x) const noexcept { return offset_ + rate_ * x; }

    // The extremes of all feasible lines.
    double highest_at(double x) const noexcept;
    double lowest_at(double x) const noexcept;
    double lowest_rate() const noexcept { return corners_.front().rate; }
    double highest_rate() const noexcept { return corners_.back().rate; }

  private:
    struct Corner {
        double rate;
        double highest;  ///< the largest offset with that rate
        double lowest;
    };
    void choose(std::span<const Corner> corners);

    std::vector<Corner> corners_;  ///< by rate; empty: no line fits
    double violation_ = 0;
    double offset_ = 0;
    double rate_ = 0;
};

}  // namespace marey
