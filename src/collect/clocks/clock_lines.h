// clock_lines.h: all lines between two sets of points, by convex hulls and linear programming in two
// unknowns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
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
    ClockLines(std::span<const LineBound> upper, std::span<const LineBound> lower) {
        if (upper.empty() || lower.empty()) return;
        Tangent above(hull_of(upper, 1));
        std::vector<LineBound> lower_hull = hull_of(lower, -1);
        std::reverse(lower_hull.begin(), lower_hull.end());
        Tangent below(std::move(lower_hull));

        std::vector<double> rates = {-kMaxClockRate, kMaxClockRate};
        above.add_slopes(rates);
        below.add_slopes(rates);
        std::erase_if(rates, [](double rate) { return !(rate >= -kMaxClockRate && rate <= kMaxClockRate); });
        std::sort(rates.begin(), rates.end());
        rates.erase(std::unique(rates.begin(), rates.end()), rates.end());

        // The room between both offsets is concave in the rate and linear between two of these rates.
        std::vector<Corner> all;
        all.reserve(rates.size());
        for (const double rate : rates) all.push_back({rate, above.offset_at(rate), below.offset_at(rate)});
        const auto room = [](const Corner& corner) { return corner.highest - corner.lowest; };
        const auto crossing = [&](const Corner& in, const Corner& out) {
            const double part = room(in) / (room(in) - room(out));
            const auto between = [part](double from, double to) { return from + part * (to - from); };
            return Corner{between(in.rate, out.rate), between(in.highest, out.highest),
                          between(in.lowest, out.lowest)};
        };
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (room(all[i]) < 0) continue;
            if (corners_.empty() && i > 0) corners_.push_back(crossing(all[i], all[i - 1]));
            corners_.push_back(all[i]);
            if (i + 1 < all.size() && room(all[i + 1]) < 0) corners_.push_back(crossing(all[i], all[i + 1]));
        }
        choose(corners_.empty() ? all : corners_);
    }

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
    double highest_at(double x) const noexcept {
        double highest = -std::numeric_limits<double>::infinity();
        for (const Corner& corner : corners_) highest = std::max(highest, corner.highest + corner.rate * x);
        return highest;
    }
    double lowest_at(double x) const noexcept {
        double lowest = std::numeric_limits<double>::infinity();
        for (const Corner& corner : corners_) lowest = std::min(lowest, corner.lowest + corner.rate * x);
        return lowest;
    }
    double lowest_rate() const noexcept { return corners_.front().rate; }
    double highest_rate() const noexcept { return corners_.back().rate; }

  private:
    /// The hull of bounds that a line can touch. `sign` 1: from below, for upper bounds; -1: from above.
    static std::vector<LineBound> hull_of(std::span<const LineBound> bounds, double sign) {
        std::vector<LineBound> hull;
        for (const LineBound& bound : bounds) {
            if (!hull.empty() && hull.back().x == bound.x) {
                if (sign * bound.y >= sign * hull.back().y) continue;
                hull.pop_back();
            }
            while (hull.size() > 1) {
                const LineBound &a = hull[hull.size() - 2], &b = hull.back();
                const double turn = (b.x - a.x) * (bound.y - a.y) - (b.y - a.y) * (bound.x - a.x);
                if (sign * turn > 0) break;
                hull.pop_back();
            }
            hull.push_back(bound);
        }
        return hull;
    }

    static double slope(const LineBound& a, const LineBound& b) { return (b.y - a.y) / (b.x - a.x); }

    /// Walks along a hull while the rate rises. For upper bounds the touching point moves to larger x, for
    /// lower bounds to smaller x.
    class Tangent {
      public:
        explicit Tangent(std::vector<LineBound> hull) : hull_(std::move(hull)) {}

        double offset_at(double rate) {
            while (at_ + 1 < hull_.size() && slope(hull_[at_], hull_[at_ + 1]) <= rate) ++at_;
            return hull_[at_].y - rate * hull_[at_].x;
        }
        void add_slopes(std::vector<double>& rates) const {
            for (std::size_t i = 1; i < hull_.size(); ++i) rates.push_back(slope(hull_[i - 1], hull_[i]));
        }

      private:
        std::vector<LineBound> hull_;
        std::size_t at_ = 0;
    };

    struct Corner {
        double rate;
        double highest;  ///< the largest offset with that rate
        double lowest;
    };
    void choose(std::span<const Corner> corners) {
        double widest = -std::numeric_limits<double>::infinity(), first = 0, last = 0;
        for (const Corner& corner : corners) {
            const double room = corner.highest - corner.lowest;
            if (room > widest) {
                widest = room;
                first = corner.rate;
            }
            if (room >= widest) last = corner.rate;
        }
        violation_ = -widest / 2;
        rate_ = first + (last - first) / 2;
        if (first <= -kMaxClockRate || last >= kMaxClockRate)
            rate_ = std::clamp(0.0, corners.front().rate, corners.back().rate);
        double highest = std::numeric_limits<double>::infinity(), lowest = -highest;
        for (std::size_t i = 0; i < corners.size(); ++i) {
            const Corner& next = corners[i];
            if (next.rate < rate_) continue;
            const Corner& before = corners[i == 0 ? 0 : i - 1];
            const double length = next.rate - before.rate;
            const double part = length > 0 ? (rate_ - before.rate) / length : 0;
            highest = before.highest + part * (next.highest - before.highest);
            lowest = before.lowest + part * (next.lowest - before.lowest);
            break;
        }
        offset_ = lowest + (highest - lowest) / 2;
    }

    std::vector<Corner> corners_;  ///< by rate; empty: no line fits
    double violation_ = 0;
    double offset_ = 0;
    double rate_ = 0;
};

}  // namespace marey
