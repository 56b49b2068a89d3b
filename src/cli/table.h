// table.h: text in columns.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal.h"

namespace marey::cli {

/// Rows of cells, aligned. Every row has as many cells as there are columns. Cells are valid UTF-8 without
/// control characters (printable()).
class Table {
  public:
    struct Column {
        std::string title;
        bool left = false;      ///< aligned left instead of right
        bool flexible = false;  ///< cut in the middle if the terminal is too narrow; one column at most
        bool cut_left = false;  ///< if flexible: cut at the left instead, as cut_call() does
    };

    explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
    void add(std::vector<std::string> cells, Style style = Style::Plain);
    std::string text(const Terminal& terminal) const;
    std::string markdown() const;

  private:
    struct Line {
        std::vector<std::string> cells;
        Style style;
    };
    std::vector<std::size_t> widths(const Terminal& terminal) const;

    std::vector<Column> columns_;
    std::vector<Line> lines_;
};

}  // namespace marey::cli
