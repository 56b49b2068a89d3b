// range_places.h: where ranges belong: the step of each range, the group and sequence number of collectives.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include <marey/trace.h>

namespace marey {

/// A range in which all ranks of a group meet.
struct Collective {
    StringId group = 0;
    std::int64_t sequence = 0;
};

class RangePlaces {
  public:
    /// Takes linear time in the number of ranges.
    explicit RangePlaces(const Trace& trace);

    /// The number of the step of its process during which the range began; -1: none.
    std::int64_t step(Row range) const { return step_.empty() ? -1 : step_[range]; }
    /// Null if the range is not a collective.
    const Collective* collective(Row range) const;

  private:
    void find_steps(const Trace& trace);
    void find_collectives(const Trace& trace);

    std::vector<std::int64_t> step_;  ///< by range; empty: the trace has no steps
    std::unordered_map<Row, Collective> collectives_;
};

}  // namespace marey
