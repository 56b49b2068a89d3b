// calls_table.h: the calls of a program as a table: where its time went, the heaviest first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <marey/averages.h>

#include "cli/terminal.h"

namespace marey::cli {

/// What calls are summed up with: totals that count no time twice.
AverageOptions call_options(GroupBy by = GroupBy::Name);
/// How many calls the rows stand for; one that is suspended is one, however often it goes on.
std::uint64_t count_calls(const Averages& averages);
/// Whether the rows are mostly calls of Python (and collections of its garbage).
bool are_calls(const Averages& averages);
/// The same of what the processor did, whatever a device did beside it.
bool are_host_calls(const Averages& averages);
/// Whether calls_text() can be sorted by it.
bool is_call_sort_key(const std::string& key);

/// One line per row, `limit` at most (0: all). `sort_by`: a key of table_columns() of which
/// is_call_sort_key() says yes. `title` is that of the names. Rows must be printable.
std::string calls_text(const Averages& averages, const std::string& title, const std::string& sort_by,
                       bool ascending, std::size_t limit, const Terminal& terminal);

}  // namespace marey::cli
