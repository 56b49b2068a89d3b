// recording_cost.h: what recording single ranges took.
#pragma once

#include <algorithm>
#include <vector>

#include <kymo/trace.h>

#include "trace/trace_data.h"

namespace kymo {

/// The costs that the recording process measured, as costs of ranges.
class RecordingCosts {
  public:
    explicit RecordingCosts(const Trace& trace) : slices_(trace.data().range_arguments) {
        for (const CostInfo& cost : trace.costs()) {
            are_known_ = true;
            if (cost.kind == "range") plain_ns_ = cost.ns;
            if (cost.kind == "range_with_values") with_values_ns_ = cost.ns;
        }
    }
    bool are_known() const noexcept { return are_known_; }
    /// Ranges are asked for in rising order.
    double of_range(Row range) noexcept {
        while (next_ < slices_.size() && slices_[next_].row < range) ++next_;
        const bool has_values = next_ < slices_.size() && slices_[next_].row == range;
        return has_values ? with_values_ns_ : plain_ns_;
    }

  private:
    const std::vector<ArgumentSlice>& slices_;
    std::size_t next_ = 0;
    bool are_known_ = false;
    double plain_ns_ = 0;
    double with_values_ns_ = 0;
};

}  // namespace kymo
