// table_columns.h: the columns of averages: keys, titles and values, and the text of cells in the format of
// PyTorch's profiler.
#pragma once

#include <variant>

#include <marey/averages.h>
#include <marey/table.h>

namespace marey {

enum class CellKind : std::uint8_t {
    Name,  ///< cut at its end
    Text,
    Time,         ///< nanoseconds
    HostTime,     ///< likewise, of the host
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
    std::string_view heading{};  ///< in Marey's own tables; empty: the key in words
    std::size_t width = 12;      ///< for numbers
};

/// Throws marey::Error if the key is unknown; `what` is "sort key" or "column".
const ColumnInfo& find_column(std::string_view key, const char* what);
/// The requested columns or, by default, those of PyTorch's table that have data.
std::vector<const ColumnInfo*> shown_columns(const Averages& averages, const TableOptions& options);
/// The same for machine-readable output.
std::vector<const ColumnInfo*> data_columns(const Averages& averages, const TableOptions& options);
/// The same for Marey's own table. Without requested columns the stack is the last one.
std::vector<const ColumnInfo*> plain_columns(const Averages& averages, const TableOptions& options);
/// All rows in the requested order.
std::vector<const AverageRow*> sorted_rows(const Averages& averages, const TableOptions& options);
/// Removes the rows that are not printed: those not at the top level, if requested, and those above the
/// limit.
void limit_rows(std::vector<const AverageRow*>& rows, const TableOptions& options);

std::string time_text(double us, std::string_view unit);  ///< "1.234ms"; unit: "s", "ms", "us" or any
std::string share_text(double part, double whole);        ///< "12.34%"; "NaN" if `whole` is 0
std::string memory_text(std::int64_t bytes);              ///< "1.50 KB"

// Text is UTF-8. An invalid byte counts as a character.
std::size_t character_count(std::string_view text) noexcept;
std::string_view first_characters(std::string_view text, std::size_t count) noexcept;
std::string_view last_characters(std::string_view text, std::size_t count) noexcept;

/// Formats the cells of a table; holds the sums over all rows that shares refer to.
class TableCells {
  public:
    TableCells(const Averages& averages, const std::vector<const ColumnInfo*>& columns,
               const TableOptions& options);

    std::string title(const ColumnInfo& column) const;
    /// The complete text; for a stack the first entry.
    std::string text(const ColumnInfo& column, const AverageRow& row) const;
    /// "Self CPU time total: 1.234ms" and, if there is device time, the same for the device; each ends with a
    /// newline.
    std::string closing_lines() const;

  private:
    void scale_flops(const Averages& averages);

    std::string unit_;
    std::string device_;  ///< in upper case
    double cpu_us_ = 0;
    double device_us_ = 0;
    bool has_device_time_ = false;
    double flops_scale_ = 1;
    std::string_view flops_title_ = "FLOPs";
};

}  // namespace marey
