// event_costs.h: what recording an event cost, and in whose time that was spent.
#pragma once

#include <cstdint>

#include <marey/trace.h>

#include "analyze/innermost_ranges.h"
#include "analyze/track_place.h"

namespace marey {

/// What recording one event of each kind costs, as measured by the recording process; all 0 when it is not
/// known.
struct EventCosts {
    bool known = false;
    double range_ns = 0;
    double range_with_values_ns = 0;
    double instant_ns = 0;
    double counter_ns = 0;
    double report_ns = 0;  ///< an allocation report; a counter's cost where it was not measured

    EventCosts() = default;
    explicit EventCosts(const Trace& trace);
};

// The model: a range is timed from just after its recording has begun to just before it ends, so its own cost
// is spent around it, in the self time of its parent. What instants, counters, allocation reports and the
// starts of async ranges cost is spent in the self time of the innermost range that is open on their thread.
// What a device does costs nobody anything.

/// A cost for each range of a trace, asked for in order of rows.
class RangeCosts {
  public:
    RangeCosts(const Trace& trace, const EventCosts& costs) noexcept;
    /// What recording the range itself cost: spent in its parent's time. `range` may not fall from call to
    /// call.
    double of(Row range) noexcept;

  private:
    const Trace* trace_;
    EventCosts costs_;
    std::size_t next_slice_ = 0;
};

/// Calls visit(Row payer, double ns) for what points and async ranges cost: all but the costs of a thread's
/// own ranges, which their parents pay.
template <typename Visit>
void visit_loose_costs(const Trace& trace, const EventCosts& costs, Visit visit) {
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
