// footer.h: what stands below every table: what was kept and lost, what recording cost, how good the clock
// is.
#pragma once

#include <string>

#include <marey/trace.h>

#include "cli/terminal.h"

namespace marey::cli {

/// One fact per line, then every problem of the trace as a line.
std::string footer(const Trace& trace, const Terminal& terminal);

// The facts, one by one; `marey info` shows them with titles.
std::string events_fact(const Trace& trace);    ///< "12 events kept (10 ranges, ...), 3 dropped"
std::string overhead_fact(const Trace& trace);  ///< "about 1.23 ms in all, 0.1% of ..."
std::string clock_fact(const Trace& trace);     ///< "tsc at 2.10 GHz, times exact to 40 ns"
std::string window_fact(const Trace& trace);    ///< "1.20 s on 3 threads; ..."
std::string problem_lines(const Trace& trace, const Terminal& terminal);

/// A thread as people know it: its name, and its number where the name says nothing.
std::string thread_label(const Trace& trace, Row thread);
std::uint64_t dropped_events(const Trace& trace);

}  // namespace marey::cli
