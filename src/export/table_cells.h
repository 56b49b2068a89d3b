// table_cells.h: table values as readable text, in the format of PyTorch's profiler.
#pragma once

#include "export/table_columns.h"

namespace marey {

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
