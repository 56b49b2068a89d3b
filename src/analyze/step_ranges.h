// step_ranges.h: which ranges are the rounds of a loop.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <marey/trace.h>

namespace marey {

struct StepRange {
    Row row;
    std::int64_t number;  ///< behind the last '#' of its name, else how many came before on its thread
};

/// Steps of threads (not of devices), in order of rows. `pattern` empty: ranges of scope Step and those named
/// ProfilerStep#n; else those whose whole name it matches, where '*' stands for any text and '?' for one
/// byte. Of nested ones on a track the outermost.
std::vector<StepRange> find_steps(const Trace& trace, std::string_view pattern);

/// For each site, whether its ranges are steps by `pattern`.
std::vector<bool> step_sites(const Trace& trace, std::string_view pattern);

}  // namespace marey
