// overhead.cpp: the number of events per thread, and the cost of recording them.
#include <algorithm>
#include <array>

#include <marey/analyze.h>

#include "analyze/events/event_costs.h"
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

/// Kinds of calls whose hooks cost different times.
enum CallKind : std::uint8_t { kPythonCall, kCCall, kPartOfCall, kNoCall };
constexpr std::size_t kCallKinds = kNoCall;
using CallCounts = std::array<std::uint64_t, kCallKinds + 1>;  ///< the last: of other ranges

/// The cost of recording calls, in addition to their ranges.
struct CallCosts {
    std::vector<CallCounts> of_thread;
    std::array<double, kCallKinds> ns{};  ///< per call

    double total(Row thread) const {
        double sum = 0;
        for (std::size_t kind = 0; kind < kCallKinds; ++kind)
            sum += static_cast<double>(of_thread[thread][kind]) * ns[kind];
        return sum;
    }
};

/// The kinds of the calls of a trace.
class CallKinds {
  public:
    explicit CallKinds(const Trace& trace) : sites_(trace.ranges().site), flags_(trace.ranges().flags) {
        for (const SiteInfo& site : trace.sites())
            of_site_.push_back(site.scope == Scope::PythonFunction ? kPythonCall
                               : site.scope == Scope::CFunction    ? kCCall
                                                                   : kNoCall);
    }
    CallKind of(Row row) const noexcept {
        const CallKind kind = of_site_[sites_[row]];
        return kind == kPythonCall && (flags_[row] & kPart) != 0 ? kPartOfCall : kind;
    }
    /// Counts the calls of a track.
    void count(const TrackInfo& track, CallCounts& counts) const noexcept {
        const Row end = track.first_range + track.range_count;
        for (Row row = track.first_range; row < end; ++row) ++counts[of(row)];
    }

  private:
    std::span<const std::uint32_t> sites_;
    std::span<const std::uint16_t> flags_;
    std::vector<CallKind> of_site_;
};

/// The times between calls of a kind that follow each other in one caller, from a sample of the rows.
class CallGaps {
  public:
    explicit CallGaps(const Trace& trace)
        : ranges_(trace.ranges()), stride_(static_cast<Row>(ranges_.size() / kMaxSampled + 1) * kBlock) {}

    void add(const TrackInfo& track, const CallKinds& kinds) {
        const Row end = track.first_range + track.range_count;
        for (Row first = track.first_range; first < end; first += std::min(stride_, end - first)) {
            last_.clear();
            for (Row row = first; row < end && row - first < kBlock; ++row) add(row, kinds.of(row));
        }
    }
    /// One of the shortest; 0: there are too few.
    std::int64_t shortest(std::size_t kind) {
        std::vector<std::int64_t>& gaps = gaps_[kind];
        if (gaps.size() < kMinGaps) return 0;
        const auto low = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 20);
        std::nth_element(gaps.begin(), low, gaps.end());
        return *low;
    }

  private:
    static constexpr std::size_t kMaxSampled = 200'000;
    static constexpr Row kBlock = 4096;  ///< rows in sequence that are sampled together
    static constexpr std::size_t kMinGaps = 20;
    struct Last {
        Row row;
        CallKind kind;
    };

    void add(Row row, CallKind kind) {
        if (kind == kNoCall) return;
        const std::uint32_t depth = ranges_.depth[row];
        if (last_.size() <= depth) last_.resize(depth + 1, {kNoRow, kNoCall});
        const Last before = last_[depth];
        last_[depth] = {row, kind};
        if (before.kind != kind || ranges_.parent[before.row] != ranges_.parent[row]) return;
        const std::int64_t gap =
            ranges_.start_ns[row] - ranges_.start_ns[before.row] - ranges_.duration_ns[before.row];
        if (gap > 0) gaps_[kind].push_back(gap);
    }

    RangeColumns ranges_;
    Row stride_;              ///< from one sampled block to the next
    std::vector<Last> last_;  ///< per depth
    std::array<std::vector<std::int64_t>, kCallKinds> gaps_;
};

// The hook that observes a call costs more than the range, by an amount that depends on the interpreter and
// the kind of call. The recording process measures it for Python calls and resumes. Where it did not: between
// the end of a call and the start of the next one in the same caller lie the second half of one hook, the
// first half of the next, the interpreter's work and the program's work. The shortest of these times is
// therefore used; it is too high by at most the cost of a bare call. A kind that is too rare costs as much as
// the cheapest other one.
CallCosts call_costs(const Trace& trace, const EventCosts& measured) {
    const double range_ns = measured.range_ns;
    constexpr double kMaxCostRatio = 16;  // relative to a range: all known hooks cost less
    CallCosts costs;
    costs.of_thread.resize(trace.threads().size());
    const CallKinds kinds(trace);
    CallGaps gaps(trace);
    for (const TrackInfo& track : trace.tracks()) {
        if (track.kind != TrackKind::Thread) continue;
        kinds.count(track, costs.of_thread[track.thread]);
        gaps.add(track, kinds);
    }
    double least = 0;
    for (std::size_t kind = 0; kind < kCallKinds; ++kind) {
        const std::int64_t gap = gaps.shortest(kind);
        if (gap == 0) continue;
        costs.ns[kind] = std::clamp(static_cast<double>(gap), range_ns, kMaxCostRatio * range_ns);
        least = least == 0 ? costs.ns[kind] : std::min(least, costs.ns[kind]);
    }
    if (measured.python_call_ns > 0) costs.ns[kPythonCall] = measured.python_call_ns;
    if (measured.python_resume_ns > 0) costs.ns[kPartOfCall] = measured.python_resume_ns;
    for (double& ns : costs.ns) ns = std::max(ns == 0 ? least : ns, range_ns) - range_ns;
    return costs;
}

}  // namespace

Overhead estimate_overhead(const Trace& trace) {
    const EventCosts costs(trace);
    const CallCosts calls = call_costs(trace, costs);
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
                          static_cast<double>(events.reports) * costs.report_ns + calls.total(thread);
        overhead.total_ns += ns;
        if (ns > busiest_ns) {
            busiest_ns = ns;
            overhead.busiest_thread = thread;
        }
    }
    if (window_ns > 0) overhead.busiest_share = busiest_ns / window_ns;
    return overhead;
}

EventCosts::EventCosts(const Trace& trace) {
    bool has_report = false;
    for (const CostInfo& cost : trace.costs()) {
        known = true;
        if (cost.kind == "range") range_ns = cost.ns;
        if (cost.kind == "range_with_values") range_with_values_ns = cost.ns;
        if (cost.kind == "instant") instant_ns = cost.ns;
        if (cost.kind == "counter") counter_ns = cost.ns;
        if (cost.kind == "python_call") python_call_ns = cost.ns;
        if (cost.kind == "python_resume") python_resume_ns = cost.ns;
        if (cost.kind == "allocation_report") {
            report_ns = cost.ns;
            has_report = true;
        }
    }
    if (!has_report) report_ns = counter_ns;
}

RangeCosts::RangeCosts(const Trace& trace, const EventCosts& costs) noexcept
    : trace_(&trace), costs_(costs) {}

double RangeCosts::of(Row range) noexcept {
    const std::vector<ArgumentSlice>& slices = trace_->data().range_arguments;
    while (next_slice_ < slices.size() && slices[next_slice_].row < range) ++next_slice_;
    const bool has_values = next_slice_ < slices.size() && slices[next_slice_].row == range;
    return has_values ? costs_.range_with_values_ns : costs_.range_ns;
}

}  // namespace marey
