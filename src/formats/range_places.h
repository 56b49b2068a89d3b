// range_places.h: where ranges belong: the step of each range, the group and sequence number of collectives.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <marey/trace.h>

namespace marey {

/// The end of the stretch of equal values that begins at `row`, `limit` at most.
template <class T>
std::size_t end_of_equal(const std::vector<T>& values, std::size_t row, std::size_t limit) {
    const T* const first = values.data() + row;
    const T* const end = values.data() + std::min(limit, values.size());
    const T* const other = std::find_if(first, end, [value = *first](T each) { return each != value; });
    return static_cast<std::size_t>(other - values.data());
}

/// A range in which all ranks of a group meet.
struct Collective {
    std::uint32_t group = 0;  ///< of RangePlaces::group_name()
    std::int64_t sequence = 0;
};

class RangePlaces {
  public:
    /// Takes linear time in the number of ranges.
    explicit RangePlaces(const Trace& trace);

    /// The number of the step of its process during which the range began; -1: none.
    std::int64_t step(Row range) const { return step_.empty() ? -1 : step_[range]; }
    /// 1 if a range around it on its track has the same name, 0 otherwise.
    std::uint8_t is_recursive(Row range) const { return recursive_[range]; }
    /// The end of the stretch of ranges for which that is equal, as below.
    std::size_t end_of_recursive(std::size_t range, std::size_t limit) const {
        return end_of_equal(recursive_, range, limit);
    }
    /// Null if the range is not a collective.
    const Collective* collective(Row range) const;
    std::string_view group_name(std::uint32_t group) const { return groups_[group]; }

    /// The end of the stretch of ranges of equal steps that begins at `range`, `limit` at most.
    std::size_t end_of_step(std::size_t range, std::size_t limit) const {
        return step_.empty() ? limit : end_of_equal(step_, range, limit);
    }
    /// The first collective after `range`; the number of ranges if there is none.
    std::size_t next_collective(Row range) const;

  private:
    void find_steps(const Trace& trace);
    void find_recursive(const Trace& trace);
    void find_collectives(const Trace& trace);

    struct Placed {
        Row range;
        Collective collective;
    };
    /// The first one at or after `range`.
    std::vector<Placed>::const_iterator first_from(std::size_t range) const;

    std::size_t ranges_;
    std::vector<std::int64_t> step_;       ///< by range; empty: the trace has no steps
    std::vector<std::uint8_t> recursive_;  ///< by range
    std::vector<Placed> collectives_;      ///< in order of ranges
    std::vector<std::string> groups_;      ///< numbers as text: MPI's groups have no names
};

}  // namespace marey
