// ratio_interval.cpp: intervals for ratios of run times. The choice was made by simulation, which
// ratio_interval_test.cpp repeats: bootstraps are too narrow below 20 runs (77 to 92% coverage at 10+10).
#include "analyze/compare/ratio_interval.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace marey {
namespace {

constexpr double kIntervalLevel = 0.95;
constexpr double kTestLevel = 0.05;

/// Of the polynomial for the drift: enough for a random walk, and few enough for the runs.
double drift_degree(double pairs) {
    return std::min(std::floor(pairs * 0.4), 5.0);
}

/// The regularised incomplete beta function, by its continued fraction (Lentz).
double incomplete_beta(double a, double b, double x) {
    if (x <= 0 || x >= 1) return x <= 0 ? 0 : 1;
    if (x > (a + 1) / (a + b + 2)) return 1 - incomplete_beta(b, a, 1 - x);
    const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) +
                                  b * std::log1p(-x)) /
                         a;
    double c = 1, d = 1 / (1 - (a + b) * x / (a + 1)), product = d;
    for (int m = 1; m <= 300; ++m) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / (1 + even * d), c = 1 + even / c, product *= c * d;
        d = 1 / (1 + odd * d), c = 1 + odd / c, product *= c * d;
        if (std::abs(c * d - 1) < 1e-14) break;
    }
    return front * product;
}

struct Sample {
    double mean = 0, squares = 0;
    std::size_t count = 0;
    explicit Sample(const std::vector<double>& values) : count(values.size()) {
        for (const double value : values) mean += value / static_cast<double>(count);
        for (const double value : values) squares += (value - mean) * (value - mean);
    }
    double degrees() const { return static_cast<double>(count) - 1; }
    double size() const { return static_cast<double>(count); }
};

std::vector<double> logarithms(std::span<const double> values) {
    std::vector<double> logs;
    for (const double value : values) logs.push_back(std::log(value));
    return logs;
}

/// Fills the interval. `error`: the standard error of the mean.
RatioInterval interval_of(double mean, double error, double degrees, double size, bool in_turns) {
    RatioInterval result;
    const double half = student_quantile(0.5 + kIntervalLevel / 2, degrees) * error;
    result.ratio = std::exp(mean);
    result.low = std::exp(mean - half);
    result.high = std::exp(mean + half);
    constexpr double kRounding = 1e-12;
    result.p = error > kRounding            ? student_two_sided(mean / error, degrees)
               : std::abs(mean) < kRounding ? 1
                                            : 0;
    result.error = error;
    result.runs = size;
    result.in_turns = in_turns;
    return result;
}

using Series = std::vector<double>;

double product(const Series& a, const Series& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// Takes out of `from` what is a multiple of `what`.
void take_out(const Series& what, Series& from) {
    const double factor = product(what, from) / product(what, what);
    for (std::size_t i = 0; i < from.size(); ++i) from[i] -= factor * what[i];
}

/// Least squares: a run's value is a polynomial of its place, for the drift of the machine, plus what its
/// side adds.
RatioInterval in_turns_interval(const Series& before, const Series& after) {
    const std::size_t pairs = before.size(), count = 2 * pairs;
    const double degree = drift_degree(static_cast<double>(pairs));
    Series values, side;
    for (std::size_t i = 0; i < pairs; ++i) {
        for (const bool is_second : {false, true}) {
            const bool is_new = is_second == (i % 2 == 0);
            values.push_back(is_new ? after[i] : before[i]);
            side.push_back(is_new);
        }
    }
    std::vector<Series> drift;  // orthogonal
    for (int power = 0; power <= static_cast<int>(degree); ++power) {
        Series term;
        for (std::size_t i = 0; i < count; ++i)
            term.push_back(std::pow(2.0 * static_cast<double>(i) / static_cast<double>(count) - 1, power));
        for (const Series& other : drift) take_out(other, term);
        take_out(term, values);
        take_out(term, side);
        drift.push_back(std::move(term));
    }
    const double weight = product(side, side), mean = product(side, values) / weight;
    take_out(side, values);
    const double degrees = static_cast<double>(count) - degree - 2;
    return interval_of(mean, std::sqrt(product(values, values) / degrees / weight), degrees,
                       static_cast<double>(pairs), true);
}

}  // namespace

double student_two_sided(double t, double degrees) {
    return incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t));
}

double student_quantile(double probability, double degrees) {
    double low = 0, high = 1;
    while (1 - student_two_sided(high, degrees) / 2 < probability && high < 1e9) high *= 2;
    for (int i = 0; i < 100 && high - low > 1e-12 * high; ++i) {
        const double middle = (low + high) / 2;
        (1 - student_two_sided(middle, degrees) / 2 < probability ? low : high) = middle;
    }
    return high;
}

std::optional<RatioInterval> ratio_interval(std::span<const double> before, std::span<const double> after,
                                            bool in_turns) {
    const auto is_positive = [](double value) { return value > 0; };
    if (before.empty() || after.empty() || before.size() + after.size() < 3) return std::nullopt;
    if (!std::ranges::all_of(before, is_positive) || !std::ranges::all_of(after, is_positive))
        return std::nullopt;
    const std::vector<double> old_logs = logarithms(before), new_logs = logarithms(after);
    if (in_turns && before.size() == after.size()) return in_turns_interval(old_logs, new_logs);
    const Sample a(old_logs), b(new_logs);
    const double mean = b.mean - a.mean;
    const double size = 2 / (1 / a.size() + 1 / b.size());  // of two equal sides that tell as much
    if (a.count == b.count || a.count == 1 || b.count == 1) {
        const double degrees = a.degrees() + b.degrees();
        const double variance = (a.squares + b.squares) / degrees;
        return interval_of(mean, std::sqrt(variance * 2 / size), degrees, size, false);
    }
    const double old_part = a.squares / a.degrees() / a.size(), new_part = b.squares / b.degrees() / b.size();
    const double sum = old_part + new_part;
    const double degrees =
        sum > 0 ? sum * sum / (old_part * old_part / a.degrees() + new_part * new_part / b.degrees()) : 1;
    return interval_of(mean, std::sqrt(sum), degrees, size, false);
}

Verdict verdict_of(const RatioInterval& interval, double effect, bool is_significant) {
    const double limit = std::log1p(effect), ratio = std::log(interval.ratio);
    if (is_significant && std::abs(ratio) >= limit) return ratio > 0 ? Verdict::Slower : Verdict::Faster;
    const bool is_inside = std::log(interval.low) >= -limit && std::log(interval.high) <= limit;
    return is_inside ? Verdict::Same : Verdict::CannotTell;
}

std::optional<std::uint32_t> more_runs(const RatioInterval& interval, double effect, double alpha) {
    constexpr std::uint32_t kMost = 1000;
    const double limit = std::log1p(effect), ratio = std::abs(std::log(interval.ratio));
    const double needed = ratio >= limit ? ratio : limit - ratio;  // half of the interval
    const double level = ratio >= limit ? alpha : 1 - kIntervalLevel;
    for (std::uint32_t more = 1; more <= kMost; more += 1 + more / 20) {
        const double runs = interval.runs + more;
        const double degrees = 2 * runs - 2 - (interval.in_turns ? drift_degree(runs) : 0);
        const double half = student_quantile(1 - level / 2, std::max(degrees, 1.0)) * interval.error *
                            std::sqrt(interval.runs / runs);
        if (half < needed) return more;
    }
    return std::nullopt;
}

void judge(std::vector<ComparedValue*> values, double effect) {
    std::erase_if(values, [](const ComparedValue* value) { return !value->interval; });
    std::ranges::stable_sort(values, {}, [](const ComparedValue* value) { return value->interval->p; });
    bool is_significant = true;
    for (std::size_t i = 0; i < values.size(); ++i) {
        ComparedValue& value = *values[i];
        const double level = kTestLevel / static_cast<double>(values.size() - i);
        is_significant &= value.interval->p < level;
        value.verdict = verdict_of(*value.interval, effect, is_significant);
        if (value.verdict == Verdict::CannotTell) value.more_runs = more_runs(*value.interval, effect, level);
    }
}

}  // namespace marey
