// table.h: averages, or single ranges, as text: the table of PyTorch's profiler, CSV, JSON and Markdown.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <marey/averages.h>
#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

struct ResultTable;  // marey/result_table.h

/// Options of the table functions.
struct TableOptions {
    /// A key of table_columns() to sort by, largest first; equal rows keep their order. Empty: not sorted. A
    /// device name can replace "device": "self_cuda_time_total" means "self_device_time_total". Short forms:
    /// "self", "total", "average", "key".
    std::string sort_by{};
    bool ascending = false;
    std::int64_t row_limit = 100;  ///< rows to print; negative: all. Sums and shares include all rows
    std::optional<std::size_t> max_src_column_width = 75;  ///< empty: no limit
    std::optional<std::size_t> max_name_column_width = 55;
    std::optional<std::size_t> max_shapes_column_width = 80;
    std::optional<std::string> header{};
    bool top_level_events_only = false;
    std::string time_unit{};             ///< "s", "ms" or "us" for all times; otherwise chosen for each time
    std::vector<std::string> columns{};  ///< keys; empty: all columns that have values
    std::string device_name{};           ///< in titles; empty: that of Averages::device
    // For terminals.
    std::size_t width =
        0;               ///< cut names, to 20 characters or more, so that lines have this length; 0: no limit
    bool trims = false;  ///< no blanks at the ends of lines
    std::function<std::string(std::string_view)> title_style{};  ///< returns the line of titles in a style
    /// Selects the rows to print; empty: all. Sums and shares include all rows.
    std::function<bool(const AverageRow&)> shows{};
};

/// A column that a table can show and sort by.
struct TableColumn {
    std::string key;
    std::string description;
};
/// Returns all columns.
MAREY_API std::vector<TableColumn> table_columns();
/// Returns the key of the column that `name` means: a key, a short form, or a key with a device name. Throws
/// marey::Error, which lists the known keys, if there is none; `what` ("column", "sort key") is for its text.
MAREY_API std::string table_column_key(std::string_view name, const char* what = "column");

// All of these throw marey::Error, which lists the known names, for an unknown sort key or column.

/// Returns the text of PyTorch's EventList.table(); empty if there are no rows.
MAREY_API std::string averages_table(const Averages& averages, const TableOptions& options = {});
/// Returns plain values: times in nanoseconds, sizes in bytes, unknown values null. If the options have no
/// columns, all columns with values are included. Ignores the width limits, the header and the time unit.
MAREY_API ResultTable averages_data(const Averages& averages, const TableOptions& options = {});
/// Returns the table as `marey report` shows it, with Marey's words as headings: totals count recursive calls
/// once, averages are totals / calls, and host times of device work are null. The keys are those of
/// table_columns(). Without columns in the options, stacks are a last column that is not shown.
MAREY_API ResultTable averages_for_people(Averages averages, const TableOptions& options = {});
/// The plain values as text.
MAREY_API std::string averages_csv(const Averages& averages, const TableOptions& options = {});
MAREY_API std::string averages_json(const Trace& trace, const Averages& averages,
                                    const TableOptions& options = {});
/// Returns the table as Markdown. Cells are not truncated.
MAREY_API std::string averages_markdown(const Averages& averages, const TableOptions& options = {});

}  // namespace marey
