// calls_table.h: the table of a program's calls: where its time went, the heaviest first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <marey/averages.h>

#include "cli/terminal.h"

namespace marey::cli {

/// The options with which calls are averaged: totals count no time twice.
AverageOptions call_options(GroupBy by = GroupBy::Name);
/// The number of calls in the rows. A suspended call counts once, however often it is resumed.
std::uint64_t count_calls(const Averages& averages);
/// Whether the rows are mostly Python calls (and garbage collections).
bool are_calls(const Averages& averages);
/// The same for CPU rows only; device rows are ignored.
bool are_host_calls(const Averages& averages);
/// Whether calls_text() can sort by `key`.
bool is_call_sort_key(const std::string& key);

/// One line per row, at most `limit` (0: all). `sort_by` is a key of table_columns() for which
/// is_call_sort_key() returns true. `title` is the heading of the name column. Rows must be printable.
std::string calls_text(const Averages& averages, const std::string& title, const std::string& sort_by,
                       bool ascending, std::size_t limit, const Terminal& terminal);

}  // namespace marey::cli
