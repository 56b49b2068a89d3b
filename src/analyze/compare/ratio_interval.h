// ratio_interval.h: how much larger the values of one set of runs are than those of another, and whether
// that is more than chance.
#pragma once

#include <optional>
#include <span>

#include <marey/compare.h>

namespace marey {

/// The quantile of Student's distribution, for a probability of 0.5 to 1, and the probability of a value that
/// is at least so far from 0.
double student_quantile(double probability, double degrees);
double student_two_sided(double t, double degrees);

/// The ratio of the geometric means with a 95% interval: Student's t on the logarithms. In turns, value i of
/// both sides is a pair, and the order alternates from pair to pair: old, new, new, old; a drift of the
/// machine is estimated as a polynomial, of a higher degree the more runs there are, and removed. Otherwise
/// the variance is pooled if both sides have as many values, or one has a single value, and Welch's if not.
/// Empty if both sides have one value, or if a value is not positive.
std::optional<RatioInterval> ratio_interval(std::span<const double> before, std::span<const double> after,
                                            bool in_turns);

/// `is_significant`: after the correction for several rows.
Verdict verdict_of(const RatioInterval& interval, double effect, bool is_significant);

/// The number of further runs on each side after which the interval would decide, if the ratio and the
/// spread stay as they are; empty: more than 1,000. `alpha`: the level of the test.
std::optional<std::uint32_t> more_runs(const RatioInterval& interval, double effect, double alpha);

/// Decides on the values that have an interval and were tested together (Holm).
void judge(std::vector<ComparedValue*> values, double effect);

}  // namespace marey
