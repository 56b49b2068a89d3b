// call_averages.h: averages of a program's calls.
#pragma once

#include <cstdint>

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

}  // namespace marey::cli
