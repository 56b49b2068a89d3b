// footer.h: the lines below every table: events kept and dropped, recording cost, clock accuracy.
#pragma once

#include <cstddef>

#include <marey/host_clocks.h>
#include <marey/trace.h>

#include "cli/terminal.h"

namespace marey::cli {

/// One fact per line, then one line for each problem of the trace. `trace` is everything that was recorded,
/// before a filter leaves out ranges.
std::string footer(const Trace& trace, const Terminal& terminal);
/// The line about imports, to be printed before the footer. `trace` is the filtered trace.
std::string imports_line(const Trace& trace, const Terminal& terminal);

/// A fact below a table; empty if `value` is.
std::string fact_line(std::string_view title, const std::string& value, const Terminal& terminal);

/// A fact above a table.
std::string title_line(std::string_view title, const std::string& value, const Terminal& terminal);

// The separate facts; `marey info` shows them with titles.
std::string events_fact(const Trace& trace);  ///< "12 events kept (10 ranges, ...), 3 dropped"
/// "died of SIGSEGV in f <- main" and the open stacks of the threads, and why a snapshot was taken; empty if
/// the program ended normally.
/// For the top of every report.
std::string end_lines(const Trace& trace, const Terminal& terminal);
bool is_sampled(const Trace& trace);            ///< it has ranges made of samples: their times are estimates
bool is_summed(const Trace& trace);             ///< the same, but the calls and self times of names are exact
std::string times_fact(const Trace& trace);     ///< what the times of all tables are
std::string overhead_fact(const Trace& trace);  ///< "about 1.23 ms in total, 0.1% of ..."
std::string imports_fact(std::int64_t time_ns, const std::string& whole);
std::string imports_fact(const Trace& trace);  ///< "4.30 s of 8.50 s (...)"; empty if no imports are folded
/// How well the times of several hosts agree; `worst` has the largest error.
struct HostsAgreement {
    std::size_t hosts = 0;
    std::string reference{}, worst{};
    std::string evidence{};  ///< of the worst one
    std::int64_t worst_ns = -1, best_ns = kUnknownClockError;

    /// A host that is not the reference.
    void add(std::string_view host, std::int64_t error_ns, std::string_view its_evidence);
};
std::string hosts_fact(const HostsAgreement& agreement);  ///< "8 hosts, reference node3: worst +-26 us ..."
std::string hosts_fact(const Trace& trace);               ///< empty for a trace of one host
std::string clock_fact(const Trace& trace);               ///< "tsc at 2.10 GHz, accurate to 40 ns"
std::string window_fact(const Trace& trace);              ///< "1.20 s on 3 threads; ..."
std::string problem_lines(const Trace& trace, const Terminal& terminal);

/// The label of a thread in output: its name, or "thread N" if it has none.
std::string thread_label(const Trace& trace, Row thread);
/// "cuda 0", with the process if there are several.
std::string device_label(const Trace& trace, Row process, const Device& device);
std::uint64_t dropped_events(const Trace& trace);

}  // namespace marey::cli
