// overhead.cpp: the number of events per thread, and the cost of recording them.
#include <algorithm>
#include <vector>

#include <marey/analyze.h>

#include "analyze/event_costs.h"
#include "trace/trace_data.h"

namespace marey {

std::vector<ThreadTotals> thread_totals(const Trace& trace) {
    std::vector<ThreadTotals> totals(trace.threads().size());
    // The sparse index of values and the tracks are both sorted by row.
    const std::vector<ArgumentSlice>& slices = trace.data().range_arguments;
    auto slice = slices.begin();
    for (const TrackInfo& track : trace.tracks()) {
        ThreadTotals& thread = totals[track.thread];
        thread.ranges += track.range_count;
        if (track.kind == TrackKind::Async) thread.async_ranges += track.range_count;
        const Row end = track.first_range + track.range_count;
        for (; slice != slices.end() && slice->row < end; ++slice) ++thread.ranges_with_values;
    }
    for (const Row thread : trace.instants().thread) ++totals[thread].instants;
    for (const Row thread : trace.counters().thread) ++totals[thread].counters;
    for (const Row thread : trace.memory().thread) ++totals[thread].reports;
    return totals;
}

namespace {

/// The number of Python calls recorded on each thread.
struct Calls {
    std::vector<std::uint64_t> of_thread;
    double ns = 0;  ///< extra cost of recording a call, compared with a range
};

// The hook that observes a call costs more than the range, by an amount that depends on the interpreter.
// Between the end of a call and the start of the next one in the same caller lie the second half of one hook,
// the first half of the next, the interpreter's work and the program's work. The shortest of these times is
// therefore used; it is too high by at most the cost of a bare call.
Calls calls_of(const Trace& trace, double range_ns) {
    constexpr std::size_t kMaxSamples = 200'000;
    constexpr double kMaxCostRatio = 16;  // relative to a range: all known hooks cost less
    Calls calls;
    calls.of_thread.resize(trace.threads().size());
    const RangeColumns ranges = trace.ranges();
    std::vector<std::uint8_t> is_call;  // per site
    for (const SiteInfo& site : trace.sites())
        is_call.push_back(site.scope == Scope::PythonFunction || site.scope == Scope::CFunction);
    std::vector<std::int64_t> gaps;
    std::vector<Row> last;  // per depth
    for (const TrackInfo& track : trace.tracks()) {
        if (track.kind != TrackKind::Thread) continue;
        const Row end = track.first_range + track.range_count;
        for (Row row = track.first_range; row < end; ++row)
            calls.of_thread[track.thread] += is_call[ranges.site[row]];
        last.clear();
        for (Row row = track.first_range; row < end && gaps.size() < kMaxSamples; ++row) {
            if (is_call[ranges.site[row]] == 0) continue;
            const std::uint32_t depth = ranges.depth[row];
            if (last.size() <= depth) last.resize(depth + 1, kNoRow);
            const Row before = last[depth];
            last[depth] = row;
            if (before == kNoRow || ranges.parent[before] != ranges.parent[row]) continue;
            const std::int64_t gap =
                ranges.start_ns[row] - ranges.start_ns[before] - ranges.duration_ns[before];
            if (gap > 0) gaps.push_back(gap);
        }
    }
    if (gaps.empty()) return calls;
    const auto low = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 20);
    std::nth_element(gaps.begin(), low, gaps.end());
    calls.ns = std::clamp(static_cast<double>(*low), range_ns, kMaxCostRatio * range_ns) - range_ns;
    return calls;
}

}  // namespace

Overhead estimate_overhead(const Trace& trace) {
    const EventCosts costs(trace);
    const Calls calls = calls_of(trace, costs.range_ns);
    Overhead overhead;
    overhead.known = costs.known;
    const double window_ns = static_cast<double>(trace.window().end_ns - trace.window().start_ns);
    const std::vector<ThreadTotals> totals = thread_totals(trace);
    double busiest_ns = 0;
    for (Row thread = 0; thread < totals.size(); ++thread) {
        const ThreadTotals& events = totals[thread];
        const double ns = static_cast<double>(events.ranges - events.ranges_with_values) * costs.range_ns +
                          static_cast<double>(events.ranges_with_values) * costs.range_with_values_ns +
                          static_cast<double>(events.instants) * costs.instant_ns +
                          static_cast<double>(events.counters) * costs.counter_ns +
                          static_cast<double>(events.reports) * costs.report_ns +
                          static_cast<double>(calls.of_thread[thread]) * calls.ns;
        overhead.total_ns += ns;
        if (ns > busiest_ns) {
            busiest_ns = ns;
            overhead.busiest_thread = thread;
        }
    }
    if (window_ns > 0) overhead.busiest_share = busiest_ns / window_ns;
    return overhead;
}

}  // namespace marey
