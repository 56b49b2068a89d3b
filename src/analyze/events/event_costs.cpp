// event_costs.cpp: the recording cost of events, and the ranges whose time includes it.
#include "analyze/events/event_costs.h"

#include "trace/trace_data.h"

namespace marey {

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
