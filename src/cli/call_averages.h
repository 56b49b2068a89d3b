// call_averages.h: averages of a program's calls.
#pragma once

#include <cstddef>
#include <unordered_map>

#include <marey/averages.h>
#include <marey/trace.h>

namespace marey::cli {

/// The options with which calls are averaged: totals count no time twice.
AverageOptions call_options(GroupBy by = GroupBy::Name);
/// The number of calls in a trace, whose imports are not folded yet. A suspended call counts once, however
/// often it is resumed.
std::uint64_t count_calls(const Trace& trace);
/// Whether the CPU rows are mostly Python calls (and garbage collections).
bool are_host_calls(const Averages& averages);

/// Takes out the rows of functions that only wait (marey/known_waits.h). The rows must be grouped by name,
/// function, line or thread. Shares then refer to the rows that stay.
Averages take_waiting(const Trace& trace, Averages& averages);
/// The same for the rows of imports.
Averages take_imports(Averages& averages);
/// "24.9 s: selectors.py(451): EpollSelector.select 20.1 s, ... (COMMAND shows them)" for waiting rows that
/// are not in a table; empty if they took no time. Without a command, nothing shows them.
std::string waiting_fact(const Averages& waiting, std::string_view command);

/// Adds up the averages of several processes: rows with equal names and scopes become one.
class CallSum {
  public:
    void add(const Averages& averages);
    Averages& sum() noexcept { return sum_; }

  private:
    Averages sum_;
    std::unordered_map<std::string, std::size_t> rows_;  ///< by scope and name
};

}  // namespace marey::cli
