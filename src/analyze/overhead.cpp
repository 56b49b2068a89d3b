// overhead.cpp: how many events each thread has, and what recording them cost.
#include <kymo/analyze.h>

#include "analyze/event_costs.h"
#include "trace/trace_data.h"

namespace kymo {

std::vector<ThreadTotals> thread_totals(const Trace& trace) {
    std::vector<ThreadTotals> totals(trace.threads().size());
    // The sparse index of values and the tracks are both in order of rows.
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

Overhead estimate_overhead(const Trace& trace) {
    const EventCosts costs(trace);
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
                          static_cast<double>(events.reports) * costs.report_ns;
        overhead.total_ns += ns;
        if (ns > busiest_ns) {
            busiest_ns = ns;
            overhead.busiest_thread = thread;
        }
    }
    if (window_ns > 0) overhead.busiest_share = busiest_ns / window_ns;
    return overhead;
}

}  // namespace kymo
