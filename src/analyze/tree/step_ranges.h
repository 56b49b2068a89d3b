// step_ranges.h: finds the ranges that are the iterations of a loop.
#pragma once

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

}  // namespace marey
