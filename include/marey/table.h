// table.h: averages, or single ranges, as text: the table that users of PyTorch's profiler know, CSV, JSON
// and Markdown.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <marey/averages.h>
#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

struct TableOptions {
    /// A key of table_columns(), the largest first; equal rows keep their order. Empty: as they stand. Names
    /// of devices mean "device": "self_cuda_time_total" is "self_device_time_total". Short forms: "self",
    /// "total", "average", "key".
    std::string sort_by{};
    bool ascending = false;
    std::int64_t row_limit = 100;  ///< rows that are printed; negative: all. Sums and shares are of all rows
    std::optional<std::size_t> max_src_column_width = 75;  ///< nothing: no limit
    std::optional<std::size_t> max_name_column_width = 55;
    std::optional<std::size_t> max_shapes_column_width = 80;
    std::optional<std::string> header{};
    bool top_level_events_only = false;
    std::string time_unit{};             ///< "s", "ms" or "us" for all times; else each has its own
    std::vector<std::string> columns{};  ///< keys; empty: those that have something to show
    std::string device_name{};           ///< in titles; empty: that of Averages::device
    /// Which rows are printed; empty: all. Sums and shares are of all rows.
    std::function<bool(const AverageRow&)> shows{};
};

/// A column that a table can show and be sorted by.
struct TableColumn {
    std::string key;
    std::string description;
};
MAREY_API std::vector<TableColumn> table_columns();

/// All of these throw marey::Error, which lists the known ones, for an unknown sort key or column.

/// The text of PyTorch's EventList.table(). No rows give "".
MAREY_API std::string averages_table(const Averages& averages, const TableOptions& options = {});
/// The same, one row per range, with flops.
MAREY_API std::string events_table(const Trace& trace, const TableOptions& options = {});
/// Plain values: times in nanoseconds, sizes in bytes, what is unknown is empty or null. Without columns in
/// the options, all that have a value. The limits of widths, the header and the time unit do not matter.
MAREY_API std::string averages_csv(const Averages& averages, const TableOptions& options = {});
MAREY_API std::string averages_json(const Trace& trace, const Averages& averages,
                                    const TableOptions& options = {});
/// The cells of the table, none of them cut.
MAREY_API std::string averages_markdown(const Averages& averages, const TableOptions& options = {});

}  // namespace marey
