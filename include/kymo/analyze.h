// analyze.h: questions to a trace. Plain functions from a Trace to a table; the results own what they hold.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kymo/averages.h>
#include <kymo/detail/export.h>
#include <kymo/flops.h>
#include <kymo/memory_use.h>
#include <kymo/trace.h>

namespace kymo {

// ---- the call tree
// ----------------------------------------------------------------------------------------------

struct CallTreeOptions {
    bool by_thread = false;  ///< one tree per thread; roots are the threads
};

/// All ranges with the same names from the root down, merged.
struct CallTreeNode {
    std::string name;
    std::uint32_t parent = kNoRow;  ///< index of a node, smaller than this one's; kNoRow for roots
    std::uint32_t depth = 0;
    Row thread = kNoRow;     ///< with by_thread
    bool is_thread = false;  ///< with by_thread: stands for a thread, not for ranges
    bool is_async = false;   ///< from async tracks: overlaps what others do, so that no sum or share holds it
    std::uint64_t count = 0;
    std::int64_t total_ns = 0;  ///< clipped to the window
    std::int64_t self_ns = 0;
    double share = 0;  ///< of CallTree::recorded_ns: 0 to 1, any number for async ones
};

struct CallTree {
    /// In pre-order, siblings by falling total, async ones last: a parent stands before its children, a
    /// subtree is contiguous.
    std::vector<CallTreeNode> nodes;
    std::int64_t recorded_ns = 0;  ///< sum of the totals of roots that are not async
    bool by_thread = false;
};

/// Linear in the number of ranges.
KYMO_API CallTree call_tree(const Trace& trace, const CallTreeOptions& options = {});

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
KYMO_API std::vector<ThreadTotals> thread_totals(const Trace& trace);

/// What recording itself took: the measured cost of each kind of event times how many there are.
struct Overhead {
    bool known = false;  ///< false: the trace holds no measured costs
    double total_ns = 0;
    double busiest_share =
        0;  ///< of the window, on the thread where it is largest; 0 to 1, more when costs were overestimated
    Row busiest_thread = kNoRow;
};

KYMO_API Overhead estimate_overhead(const Trace& trace);

}  // namespace kymo
