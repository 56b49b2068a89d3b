// crossing_steps.h: steps that cross ranges of their thread, and the ranges inside them.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <marey/trace.h>

namespace marey {

/// The steps of threads that are on async tracks, because the program called step() inside a range. In lists
/// of events they have PyTorch's place: the parent of an event is the last one that began before it, unless
/// that one ended before the event did.
struct CrossingSteps {
    std::vector<Row> steps;
    std::unordered_set<Row> open;  ///< ranges that began in a step and are open at the stop: async in PyTorch
    std::unordered_map<Row, Row> parent;  ///< of each step, and of each range whose parent is a step
    std::vector<std::pair<Row, std::int64_t>> more_self_ns;  ///< to add to the self time of a range

    explicit CrossingSteps(const Trace& trace);

    /// Whether a range of an async track is such a step.
    bool contains(Row row) const { return parent.contains(row); }

  private:
    void add(const Trace& trace, Row step, const TrackInfo& track);
};

}  // namespace marey
