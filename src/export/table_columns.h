// table_columns.h: the columns of averages: their keys, titles and values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <marey/averages.h>
#include <marey/table.h>

namespace marey {

enum class CellKind : std::uint8_t {
    Name,  ///< cut at its end
    Text,
    Time,         ///< nanoseconds
    CpuShare,     ///< nanoseconds, shown as a part of the sum of all self times
    DeviceShare,  ///< likewise, of the device
    Bytes,
    Count,
    Shapes,
    Stack,  ///< several lines
    Flops,
};

/// A sum and how often it happened.
struct PerCall {
    std::int64_t total;
    std::uint64_t count;
};
using CellValue = std::variant<std::monostate, std::int64_t, double, PerCall, std::string_view>;

struct ColumnInfo {
    std::string_view key;
    std::string_view title;  ///< '@' stands for the name of the device
    CellKind kind;
    CellValue (*value)(const AverageRow& row);
    std::string_view description;
    std::size_t width = 12;  ///< of numbers
};

std::span<const ColumnInfo> known_columns() noexcept;
/// Throws marey::Error when there is none of that key; `what` is "sort key" or "column".
const ColumnInfo& find_column(std::string_view key, const char* what);
/// Those asked for or, where none are, those of PyTorch's table that have something to show.
std::vector<const ColumnInfo*> shown_columns(const Averages& averages, const TableOptions& options);
/// Likewise, of plain values.
std::vector<const ColumnInfo*> data_columns(const Averages& averages, const TableOptions& options);
/// The rows in the order asked for, all of them.
std::vector<const AverageRow*> sorted_rows(const Averages& averages, const TableOptions& options);
/// Leaves those to print: the top level, if only that is wanted, and no more than the limit.
void limit_rows(std::vector<const AverageRow*>& rows, const TableOptions& options);

}  // namespace marey
