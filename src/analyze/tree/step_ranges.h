// step_ranges.h: finds the ranges that are the iterations of a loop, and those that cross ranges of their
// thread.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <marey/trace.h>

namespace marey {

struct StepRange {
    Row row;
    std::int64_t number;  ///< after the last '#' of its name, else the number of earlier steps on its thread
};

/// Steps of threads (not of devices), in row order. An empty `pattern` selects ranges of scope Step and those
/// named ProfilerStep#n; otherwise ranges whose whole name matches, where '*' stands for any text and '?' for
/// one byte. Of nested steps on a track only the outermost counts.
std::vector<StepRange> find_steps(const Trace& trace, std::string_view pattern);

/// For each site, whether its ranges are steps according to `pattern`.
std::vector<bool> step_sites(const Trace& trace, std::string_view pattern);

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
