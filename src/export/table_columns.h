// table_columns.h: the columns of averages: keys, titles and values.
#pragma once

#include <variant>

#include <marey/averages.h>
#include <marey/table.h>

namespace marey {

enum class CellKind : std::uint8_t {
    Name,  ///< cut at its end
    Text,
    Time,         ///< nanoseconds
    CpuShare,     ///< nanoseconds, shown as a share of the sum of all self times
    DeviceShare,  ///< likewise, of device time
    Bytes,
    Count,
    Shapes,
    Stack,  ///< several lines
    Flops,
};

/// A sum and the number of values in it.
struct PerCall {
    std::int64_t total;
    std::uint64_t count;
};
using CellValue = std::variant<std::monostate, std::int64_t, double, PerCall, std::string_view>;

struct ColumnInfo {
    std::string_view key;
    std::string_view title;  ///< '@' stands for the device name
    CellKind kind;
    CellValue (*value)(const AverageRow& row);
    std::string_view description;
    std::size_t width = 12;  ///< for numbers
};

std::span<const ColumnInfo> known_columns() noexcept;
/// Throws marey::Error if the key is unknown; `what` is "sort key" or "column".
const ColumnInfo& find_column(std::string_view key, const char* what);
/// The requested columns or, by default, those of PyTorch's table that have data.
std::vector<const ColumnInfo*> shown_columns(const Averages& averages, const TableOptions& options);
/// The same for machine-readable output.
std::vector<const ColumnInfo*> data_columns(const Averages& averages, const TableOptions& options);
/// All rows in the requested order.
std::vector<const AverageRow*> sorted_rows(const Averages& averages, const TableOptions& options);
/// Removes the rows that are not printed: those not at the top level, if requested, and those above the
/// limit.
void limit_rows(std::vector<const AverageRow*>& rows, const TableOptions& options);

}  // namespace marey
