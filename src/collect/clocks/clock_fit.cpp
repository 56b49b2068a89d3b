// clock_fit.cpp: chooses knots among clock pairs and computes fixed-point slopes between them.
#include "collect/clocks/clock_fit.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace marey {
namespace {

using detail::ClockPair;
__extension__ using Wide = unsigned __int128;

constexpr std::int64_t kLimitNs = std::int64_t{1} << 61;
constexpr std::uint64_t kMinSegmentNs = 10'000'000;
constexpr std::uint64_t kNearNs = 1'000'000'000;

struct Slope {
    std::uint64_t multiplier;
    unsigned shift;
};

// ns / ticks rounded down, with as many bits as fit into 62, so that neither the product nor the sum
// overflows.
Slope make_slope(std::uint64_t ns, std::uint64_t ticks) {
    ns = std::max<std::uint64_t>(ns, 1);
    ticks = std::max<std::uint64_t>(ticks, 1);
    int shift = 62 + std::bit_width(ticks) - std::bit_width(ns) - 1;
    shift = std::clamp(shift, 0, 126);
    // (ns << shift) / ticks by long division: the dividend may have more than 128 bits, the quotient has at
    // most 62.
    Wide quotient = ns / ticks;
    Wide rest = ns % ticks;
    for (int i = 0; i < shift; ++i) {
        rest <<= 1;
        quotient <<= 1;
        if (rest >= ticks) {
            rest -= ticks;
            quotient |= 1;
        }
    }
    return {static_cast<std::uint64_t>(quotient), static_cast<unsigned>(shift)};
}

std::uint64_t scale(std::uint64_t ticks, Slope slope) {
    const Wide value = (static_cast<Wide>(ticks) * slope.multiplier) >> slope.shift;
    const auto limit = static_cast<Wide>(kLimitNs);
    return static_cast<std::uint64_t>(std::min(value, limit));
}

// How many ticks from a segment's start stay below 2^61 ns.
std::uint64_t reach(Slope slope, std::int64_t base_ns) {
    const Wide room = static_cast<Wide>(kLimitNs - std::max<std::int64_t>(base_ns, 0));
    if (std::bit_width(static_cast<std::uint64_t>(room)) + static_cast<int>(slope.shift) > 127)
        return ~std::uint64_t{0};
    const Wide ticks = (room << slope.shift) / std::max<std::uint64_t>(slope.multiplier, 1);
    return ticks > ~std::uint64_t{0} ? ~std::uint64_t{0} : static_cast<std::uint64_t>(ticks);
}

// Drops pairs that took more than four times the median, where a good one is within a second.
void drop_wide(std::vector<ClockPair>& pairs) {
    if (pairs.size() < 3) return;
    std::vector<std::uint64_t> widths;
    widths.reserve(pairs.size());
    for (const ClockPair& pair : pairs) widths.push_back(pair.width);
    std::nth_element(widths.begin(), widths.begin() + static_cast<std::ptrdiff_t>(widths.size() / 2),
                     widths.end());
    const std::uint64_t median = widths[widths.size() / 2];
    const auto is_wide = [&](const ClockPair& pair) { return pair.width / 4 > median; };
    std::vector<ClockPair> kept;
    std::int64_t last_good = 0;
    bool has_good = false;
    std::int64_t ahead = 0;
    bool has_ahead = false;
    std::vector<bool> near_next(pairs.size(), false);
    const auto near = [](std::int64_t a, std::int64_t b) {
        return static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b) <= kNearNs;
    };
    for (std::size_t i = pairs.size(); i-- != 0;) {
        if (!is_wide(pairs[i])) {
            ahead = pairs[i].raw_ns;
            has_ahead = true;
        } else {
            near_next[i] = has_ahead && near(ahead, pairs[i].raw_ns);
        }
    }
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        if (!is_wide(pairs[i])) {
            last_good = pairs[i].raw_ns;
            has_good = true;
        } else if (near_next[i] || (has_good && near(pairs[i].raw_ns, last_good))) {
            continue;
        }
        kept.push_back(pairs[i]);
    }
    pairs = std::move(kept);
}

// Keeps the longest subsequence in which the nanoseconds rise with the ticks (patience sorting).
void drop_backward(std::vector<ClockPair>& pairs) {
    bool rising = true;
    for (std::size_t i = 1; i < pairs.size(); ++i) rising = rising && pairs[i - 1].raw_ns < pairs[i].raw_ns;
    if (rising) return;
    constexpr auto kNone = static_cast<std::size_t>(-1);
    std::vector<std::size_t> tails;
    std::vector<std::size_t> before(pairs.size(), kNone);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        const auto place =
            std::lower_bound(tails.begin(), tails.end(), pairs[i].raw_ns,
                             [&](std::size_t at, std::int64_t ns) { return pairs[at].raw_ns < ns; });
        if (place != tails.begin()) before[i] = *(place - 1);
        if (place == tails.end()) {
            tails.push_back(i);
        } else {
            *place = i;
        }
    }
    std::vector<ClockPair> kept;
    for (std::size_t i = tails.empty() ? kNone : tails.back(); i != kNone; i = before[i])
        kept.push_back(pairs[i]);
    std::reverse(kept.begin(), kept.end());
    pairs = std::move(kept);
}

}  // namespace

ClockFit::ClockFit(detail::ClockSource source, std::uint64_t ticks_per_second, std::vector<ClockPair> pairs) {
    std::erase_if(pairs, [](const ClockPair& pair) {
        return pair.ticks == 0 || pair.raw_ns < -kLimitNs / 2 || pair.raw_ns > kLimitNs / 2;
    });
    std::sort(pairs.begin(), pairs.end(), [](const ClockPair& a, const ClockPair& b) {
        return a.ticks != b.ticks ? a.ticks < b.ticks : a.width < b.width;
    });
    const auto same = [](const ClockPair& a, const ClockPair& b) { return a.ticks == b.ticks; };
    pairs.erase(std::unique(pairs.begin(), pairs.end(), same), pairs.end());
    drop_wide(pairs);
    drop_backward(pairs);
    if (!pairs.empty()) last_pair_ticks_ = pairs.back().ticks;

    const bool ticks_are_ns = source == detail::ClockSource::MonotonicRaw ||
                              (source == detail::ClockSource::Injected && pairs.empty());
    if (pairs.empty() || ticks_are_ns) {
        const std::uint64_t rate = ticks_are_ns || ticks_per_second == 0 ? 1'000'000'000 : ticks_per_second;
        const auto best =
            std::min_element(pairs.begin(), pairs.end(),
                             [](const ClockPair& a, const ClockPair& b) { return a.width < b.width; });
        if (best != pairs.end()) {
            realtime_offset_ns_ = static_cast<std::int64_t>(static_cast<std::uint64_t>(best->real_ns) -
                                                            static_cast<std::uint64_t>(best->raw_ns));
            pairs_used_ = static_cast<std::uint32_t>(pairs.size());
        }
        ticks_per_second_ = static_cast<double>(rate);
        last_pair_ticks_ = 0;
        add_segments({{0, 0}}, rate);
        return;
    }

    std::vector<ClockPair> chosen{pairs.front()};
    const auto gap = [](const ClockPair& from, const ClockPair& to) {
        return static_cast<std::uint64_t>(to.raw_ns) - static_cast<std::uint64_t>(from.raw_ns);
    };
    for (const ClockPair& pair : pairs) {
        if (gap(chosen.back(), pair) >= kMinSegmentNs) chosen.push_back(pair);
    }
    // The last pair ends the last segment, which grows rather than leave a short one after it.
    if (chosen.size() > 1) {
        chosen.back() = pairs.back();
    } else if (ticks_per_second == 0 && pairs.size() > 1) {
        chosen.push_back(pairs.back());
    } else {
        chosen.front() =
            *std::min_element(pairs.begin(), pairs.end(),
                              [](const ClockPair& a, const ClockPair& b) { return a.width < b.width; });
    }

    std::vector<Knot> knots;
    std::uint64_t widest = 0;
    for (const ClockPair& pair : chosen) {
        knots.push_back({pair.ticks, pair.raw_ns});
        widest = std::max(widest, pair.width);
    }
    pairs_used_ = static_cast<std::uint32_t>(chosen.size());
    realtime_offset_ns_ = static_cast<std::int64_t>(static_cast<std::uint64_t>(chosen.front().real_ns) -
                                                    static_cast<std::uint64_t>(chosen.front().raw_ns));
    if (knots.size() > 1) {
        ticks_per_second_ = static_cast<double>(knots.back().ticks - knots.front().ticks) * 1e9 /
                            static_cast<double>(knots.back().ns - knots.front().ns);
    } else {
        ticks_per_second_ = static_cast<double>(ticks_per_second == 0 ? 1'000'000'000 : ticks_per_second);
    }
    add_segments(knots, ticks_per_second);
    const double error = std::ceil(static_cast<double>(widest) / 2 * 1e9 / ticks_per_second_);
    max_error_ns_ = static_cast<std::int64_t>(std::min(error, 1e15));
}

void ClockFit::add_segments(const std::vector<Knot>& knots, std::uint64_t nominal) {
    const Slope by_rate = make_slope(1'000'000'000, nominal == 0 ? 1'000'000'000 : nominal);
    Slope slope = by_rate;
    for (std::size_t i = 0; i < knots.size(); ++i) {
        const bool is_last = i + 1 == knots.size();
        if (!is_last) {
            slope = make_slope(static_cast<std::uint64_t>(knots[i + 1].ns - knots[i].ns),
                               knots[i + 1].ticks - knots[i].ticks);
        }
        Segment segment{knots[i].ticks, 0, knots[i].ns, slope.multiplier, slope.shift};
        if (i == 0) {
            // Reach back as far as there may be ticks that need a conversion at full speed: a day or so.
            const std::uint64_t back = std::min(segment.first, std::uint64_t{1} << 48);
            const std::uint64_t back_ns = scale(back, slope);
            if (back_ns < static_cast<std::uint64_t>(kLimitNs) / 2) {
                segment.first -= back;
                segment.base_ns -= static_cast<std::int64_t>(back_ns);
            }
        }
        segment.length = is_last ? std::min(reach(slope, segment.base_ns), ~std::uint64_t{0} - segment.first)
                                 : knots[i + 1].ticks - segment.first;
        segments_.push_back(segment);
    }
}

std::size_t ClockFit::find_segment(std::uint64_t ticks) const noexcept {
    const auto after =
        std::upper_bound(segments_.begin(), segments_.end(), ticks,
                         [](std::uint64_t at, const Segment& segment) { return at < segment.first; });
    return after == segments_.begin() ? 0 : static_cast<std::size_t>(after - segments_.begin() - 1);
}

std::int64_t ClockFit::to_ns(std::uint64_t ticks) const noexcept {
    const Segment& segment = segments_[find_segment(ticks)];
    if (ticks < segment.first) {
        const std::uint64_t back = scale(segment.first - ticks, {segment.multiplier, segment.shift});
        return std::max(segment.base_ns - static_cast<std::int64_t>(back), -kLimitNs);
    }
    if (ticks - segment.first >= segment.length) return kLimitNs;
    return apply(segment, ticks);
}

bool ClockFit::is_extrapolated_at(std::uint64_t end) const noexcept {
    if (last_pair_ticks_ == 0 || end <= last_pair_ticks_) return false;
    return to_ns(end) - to_ns(last_pair_ticks_) > 1'000'000;
}

std::int64_t TickConverter::convert_elsewhere(std::uint64_t ticks) noexcept {
    const ClockFit::Segment& found = fit_->segments()[fit_->find_segment(ticks)];
    if (ticks - found.first < found.length) segment_ = found;
    return fit_->to_ns(ticks);
}

}  // namespace marey
