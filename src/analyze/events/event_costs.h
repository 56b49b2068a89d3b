// event_costs.h: the recording cost of events, and the ranges whose time includes it.
#pragma once

#include <marey/trace.h>

#include "analyze/events/innermost_ranges.h"
#include "analyze/track_place.h"

namespace marey {

/// The cost of recording one event of each kind, as measured by the recording process; all 0 if unknown.
struct EventCosts {
    bool known = false;
    double range_ns = 0;
    double range_with_values_ns = 0;
    double instant_ns = 0;
    double counter_ns = 0;
    double report_ns = 0;         ///< an allocation report; equals the counter cost if it was not measured
    double python_call_ns = 0;    ///< with its hook; 0: not measured
    double python_resume_ns = 0;  ///< likewise

    EventCosts() = default;
    explicit EventCosts(const Trace& trace);
};

// The model: a range is timed from just after recording it has begun to just before recording it ends, so its
// cost falls into the self time of its parent. The cost of instants, counters, allocation reports and async
// range starts falls into the self time of the innermost open range on their thread. Device work adds no
// cost.

/// The recording cost of each range of a trace. Must be called in row order.
class RangeCosts {
  public:
    RangeCosts(const Trace& trace, const EventCosts& costs) noexcept;
    /// The cost of recording `range`, which is part of its parent's time. `range` must not decrease between
    /// calls.
    double of(Row range) noexcept;

  private:
    const Trace* trace_;
    EventCosts costs_;
    std::size_t next_slice_ = 0;
};

/// Calls visit(Row payer, double ns) for the cost of points and async ranges: everything except a thread's
/// nested ranges, which their parents pay for.
void visit_point_costs(const Trace& trace, const EventCosts& costs, auto visit) {
    InnermostRanges innermost(trace);
    const auto pay = [&](Row thread, std::int64_t time_ns, double ns) {
        const Row payer = innermost.at(thread, time_ns);
        if (payer != kNoRow) visit(payer, ns);
    };
    RangeCosts range_costs(trace, costs);
    for (const TrackInfo& track : trace.tracks()) {
        if (place_of(track) != Place::Async) continue;
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row)
            pay(track.thread, trace.ranges().start_ns[row], range_costs.of(row));
    }
    const auto charge_points = [&](const auto& points, double ns) {
        for (std::size_t i = 0; i < points.size(); ++i) pay(points.thread[i], points.time_ns[i], ns);
    };
    charge_points(trace.instants(), costs.instant_ns);
    charge_points(trace.counters(), costs.counter_ns);
    charge_points(trace.memory(), costs.report_ns);
}

}  // namespace marey
