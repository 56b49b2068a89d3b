// started_ranges.h: ranges that any thread may end, by number.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include <marey/range.h>

#include "base/fork_mutex.h"

namespace marey {

/// Any thread may call. Must live as long as the process.
class StartedRanges {
  public:
    /// Throws std::bad_alloc; the range then ends.
    void add(std::uint64_t number, Range range);
    /// Removes and returns the range, to be ended; returns a range that is not open if the number is unknown.
    Range take(std::uint64_t number) noexcept;

  private:
    struct Part {
        ForkMutex mutex;
        std::unordered_map<std::uint64_t, Range> ranges;
    };
    Part& part(std::uint64_t number) noexcept { return parts_[(number >> 1 ^ number >> 40) % parts_.size()]; }
    std::array<Part, 16> parts_;
};

}  // namespace marey
