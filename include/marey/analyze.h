// analyze.h: questions to a trace. Plain functions from a Trace to a table; the results own what they hold.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <marey/averages.h>
#include <marey/call_tree.h>
#include <marey/detail/export.h>
#include <marey/flops.h>
#include <marey/gpu_use.h>
#include <marey/memory_use.h>
#include <marey/stacks.h>
#include <marey/steps.h>
#include <marey/trace.h>

namespace marey {

// ---- what is in it, and what it cost
// -----------------------------------------------------------------------------

struct ThreadTotals {
    std::uint64_t ranges = 0;  ///< async ones included
    std::uint64_t async_ranges = 0;
    std::uint64_t ranges_with_values = 0;
    std::uint64_t instants = 0;
    std::uint64_t counters = 0;
    std::uint64_t reports = 0;  ///< of allocations

    std::uint64_t events() const noexcept { return ranges + instants + counters + reports; }
};

/// One entry per row of Trace::threads().
MAREY_API std::vector<ThreadTotals> thread_totals(const Trace& trace);

/// What recording itself took: the measured cost of each kind of event times how many there are.
struct Overhead {
    bool known = false;  ///< false: the trace holds no measured costs
    double total_ns = 0;
    double busiest_share =
        0;  ///< of the window, on the thread where it is largest; 0 to 1, more when costs were overestimated
    Row busiest_thread = kNoRow;
};

MAREY_API Overhead estimate_overhead(const Trace& trace);

}  // namespace marey
