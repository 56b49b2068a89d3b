// analyze.h: analysis of a trace. Plain functions from a Trace to a table; the results own their data.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <marey/averages.h>
#include <marey/call_tree.h>
#include <marey/detail/export.h>
#include <marey/flops.h>
#include <marey/gpu_use.h>
#include <marey/memory_use.h>
#include <marey/ranks.h>
#include <marey/samples.h>
#include <marey/stacks.h>
#include <marey/steps.h>
#include <marey/trace.h>

namespace marey {

// ---- event counts and overhead

/// The number of events of one thread, by kind.
struct ThreadTotals {
    std::uint64_t ranges = 0;  ///< including async ranges
    std::uint64_t async_ranges = 0;
    std::uint64_t ranges_with_values = 0;
    std::uint64_t instants = 0;
    std::uint64_t counters = 0;
    std::uint64_t reports = 0;  ///< allocation reports

    std::uint64_t events() const noexcept { return ranges + instants + counters + reports; }
};

/// Counts the events of each thread. Returns one entry per row of Trace::threads().
MAREY_API std::vector<ThreadTotals> thread_totals(const Trace& trace);

/// The estimated time that recording took: the measured cost of each kind of event times the number of
/// events.
struct Overhead {
    bool known = false;  ///< false: the trace has no measured costs
    double total_ns = 0;
    /// The share of the window on the thread where it is largest: 0 to 1, more if costs were overestimated.
    double busiest_share = 0;
    Row busiest_thread = kNoRow;
};

/// Estimates the recording overhead of a trace.
MAREY_API Overhead estimate_overhead(const Trace& trace);

// ---- distributed traces

/// Returns the ranges that belong to a distributed trace by their value "traceparent" or "trace_id", in
/// ascending order. `id_start`: the first hexadecimal digits of the trace's id, in lower case.
MAREY_API std::vector<Row> ranges_with_trace_id(const Trace& trace, std::string_view id_start);

}  // namespace marey
