// analyze.h: questions to a trace. Plain functions from a Trace to a table; the results own what they hold.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <kymo/call_tree.h>
#include <kymo/detail/export.h>
#include <kymo/trace.h>

namespace kymo {

// ---- averages
// ---------------------------------------------------------------------------------------------------

struct SummaryOptions {
    bool by_thread = false;   ///< one row per name and thread instead of one per name
    bool percentiles = true;  ///< fill p50 and p99 (a second pass, and 8 bytes of memory per range)
};

/// The ranges of one name. Durations are clipped to the trace's window.
struct SummaryRow {
    std::string name;
    Row thread = kNoRow;           ///< with by_thread: row of Trace::threads()
    std::uint64_t count = 0;       ///< ranges, recursive ones included
    std::uint64_t unfinished = 0;  ///< of them, still open at the window's end
    std::uint64_t async = 0;       ///< of them, on async tracks
    std::int64_t total_ns = 0;     ///< a range inside another of this name on the same track adds nothing
    std::int64_t self_ns =
        0;  ///< not covered by any child; async ranges have none, they only span what others do
    std::int64_t duration_ns =
        0;  ///< sum over all ranges, recursive ones included; what the average is made of
    std::int64_t min_ns = 0;
    std::int64_t p50_ns = 0;  ///< nearest rank: the smallest duration that half of the ranges do not exceed
    std::int64_t p99_ns = 0;
    std::int64_t max_ns = 0;

    double average_ns() const noexcept {
        return count == 0 ? 0.0 : static_cast<double>(duration_ns) / static_cast<double>(count);
    }
};

struct Summary {
    std::vector<SummaryRow> rows;   ///< in order of first appearance in the trace
    std::uint64_t range_count = 0;  ///< all ranges of the trace
    std::int64_t recorded_ns =
        0;                       ///< time covered by ranges of threads (not async): what shares are shares of
    std::int64_t window_ns = 0;  ///< length of the window
    bool by_thread = false;
    bool percentiles = true;
};

/// Groups the ranges by the text of their name. Linear in the number of ranges.
KYMO_API Summary summarize(const Trace& trace, const SummaryOptions& options = {});

// ---- what is in it, and what it cost
// -----------------------------------------------------------------------------

struct ThreadTotals {
    std::uint64_t ranges = 0;  ///< async ones included
    std::uint64_t async_ranges = 0;
    std::uint64_t ranges_with_values = 0;
    std::uint64_t instants = 0;
    std::uint64_t counters = 0;

    std::uint64_t events() const noexcept { return ranges + instants + counters; }
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
