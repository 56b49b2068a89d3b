// trace_join.h: merges traces whose clocks are known.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include <marey/trace.h>

namespace marey {

/// How the times of one trace become those of the merged trace; empty functions leave them. They must not
/// change the order of times.
struct ClockMove {
    std::function<std::int64_t(std::int64_t)> own;
    /// Of the times in exchanges that are on the clock of another host, given by its name.
    std::function<std::int64_t(std::string_view, std::int64_t)> peer;
};

/// As merge_traces() in marey/merge.h, with clocks that the caller knows. `moves`: none, or one for each
/// trace.
Trace merge_on_clocks(std::vector<Trace> traces, std::vector<ClockMove> moves);

}  // namespace marey
