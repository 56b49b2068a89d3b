// event_costs.cpp: what recording an event cost, and in whose time that was spent.
#include "analyze/event_costs.h"

#include "analyze/innermost_ranges.h"
#include "trace/trace_data.h"

namespace kymo {

EventCosts::EventCosts(const Trace& trace) {
    bool has_report = false;
    for (const CostInfo& cost : trace.costs()) {
        known = true;
        if (cost.kind == "range") range_ns = cost.ns;
        if (cost.kind == "range_with_values") range_with_values_ns = cost.ns;
        if (cost.kind == "instant") instant_ns = cost.ns;
        if (cost.kind == "counter") counter_ns = cost.ns;
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

namespace {

/// Into the innermost open range's self time.
void add_points(InnermostRanges& innermost, std::span<const std::int64_t> times, std::span<const Row> threads,
                double cost_ns, std::vector<double>& self_ns) {
    for (std::size_t i = 0; i < times.size(); ++i) {
        const Row range = innermost.at(threads[i], times[i]);
        if (range != kNoRow) self_ns[range] += cost_ns;
    }
}

void add_ranges(const Trace& trace, InnermostRanges& innermost, const EventCosts& costs,
                std::vector<double>& self_ns) {
    const RangeColumns ranges = trace.ranges();
    RangeCosts range_costs(trace, costs);
    for (const TrackInfo& track : trace.tracks()) {
        const bool is_async = track.kind == TrackKind::Async;
        if (!is_async && !holds_calls(track)) continue;
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            const Row payer =
                is_async ? innermost.at(track.thread, ranges.start_ns[row]) : ranges.parent[row];
            if (payer != kNoRow) self_ns[payer] += range_costs.of(row);
        }
    }
}

}  // namespace

RecordingTime recording_time(const Trace& trace) {
    const EventCosts costs(trace);
    RecordingTime time;
    time.known = costs.known;
    if (!time.known) return time;
    const std::span<const Row> parent = trace.ranges().parent;
    time.self_ns.resize(parent.size());
    InnermostRanges innermost(trace);
    add_ranges(trace, innermost, costs, time.self_ns);
    add_points(innermost, trace.instants().time_ns, trace.instants().thread, costs.instant_ns, time.self_ns);
    add_points(innermost, trace.counters().time_ns, trace.counters().thread, costs.counter_ns, time.self_ns);
    add_points(innermost, trace.memory().time_ns, trace.memory().thread, costs.report_ns, time.self_ns);
    time.total_ns = time.self_ns;
    for (std::size_t row = parent.size(); row-- > 0;) {  // children stand behind their parents
        if (parent[row] != kNoRow) time.total_ns[parent[row]] += time.total_ns[row];
    }
    return time;
}

}  // namespace kymo
