// event_costs.h: what recording an event cost, and in whose time that was spent.
#pragma once

#include <cstdint>
#include <vector>

#include <kymo/trace.h>

namespace kymo {

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

/// How much of each range's time recording took. The model: a range is timed from just after its recording
/// has begun to just before it ends, so its own cost is spent around it, in the self time of its parent.
/// What instants, counters, allocation reports and the starts of async ranges cost is spent in the self time
/// of the innermost range that is open on their thread. What a device does costs nobody anything.
struct RecordingTime {
    bool known = false;           ///< false: the trace holds no measured costs, and the columns are empty
    std::vector<double> self_ns;  ///< per range: part of its self time
    std::vector<double>
        total_ns;  ///< per range: part of its duration: its own self_ns and that of all inside it
};

/// Linear. 16 bytes of memory per range.
RecordingTime recording_time(const Trace& trace);

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

}  // namespace kymo
