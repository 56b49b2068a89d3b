// interval_union.h: sets of time as sorted intervals that do not touch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace marey {

struct Interval {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
};
using Intervals = std::vector<Interval>;

/// The union of intervals in any order.
inline Intervals united(Intervals intervals) {
    std::ranges::sort(intervals, {}, &Interval::start_ns);
    Intervals result;
    for (const Interval& next : intervals) {
        if (next.end_ns <= next.start_ns) continue;
        if (!result.empty() && next.start_ns <= result.back().end_ns) {
            result.back().end_ns = std::max(result.back().end_ns, next.end_ns);
        } else {
            result.push_back(next);
        }
    }
    return result;
}

/// The part of two unions that is in both.
inline Intervals intersection(const Intervals& a, const Intervals& b) {
    Intervals result;
    for (auto left = a.begin(), right = b.begin(); left != a.end() && right != b.end();) {
        const Interval both{std::max(left->start_ns, right->start_ns), std::min(left->end_ns, right->end_ns)};
        if (both.start_ns < both.end_ns) result.push_back(both);
        left->end_ns < right->end_ns ? ++left : ++right;
    }
    return result;
}

/// The length of a union between two times.
inline std::int64_t length_between(const Intervals& intervals, std::int64_t from_ns, std::int64_t to_ns) {
    auto next = std::partition_point(intervals.begin(), intervals.end(),
                                     [&](const Interval& each) { return each.end_ns <= from_ns; });
    std::int64_t length = 0;
    for (; next != intervals.end() && next->start_ns < to_ns; ++next)
        length += std::min(next->end_ns, to_ns) - std::max(next->start_ns, from_ns);
    return length;
}

}  // namespace marey
