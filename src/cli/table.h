// table.h: text in columns.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cli/terminal.h"
#include "cli/text_format.h"

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
    void add(std::vector<std::string> cells, Style style = Style::Plain) {
        lines_.push_back({std::move(cells), style});
    }
    std::string text(const Terminal& terminal) const {
        const std::vector<std::size_t> widths = this->widths(terminal);
        std::string result;
        auto append = [&](const std::vector<std::string>& cells, Style style) {
            std::string line;
            for (std::size_t i = 0; i < cells.size(); ++i) {
                const std::string cell = !columns_[i].flexible  ? cells[i]
                                         : columns_[i].cut_left ? cut_call(cells[i], widths[i])
                                                                : cut_middle(cells[i], widths[i]);
                const std::size_t used = display_width(cell);
                const std::string padding(widths[i] > used ? widths[i] - used : 0, ' ');
                if (i > 0) line.append(kGap, ' ');
                line += columns_[i].left ? cell + padding : padding + cell;
            }
            line.erase(line.find_last_not_of(' ') + 1);
            result += styled(terminal, style, line) + "\n";
        };
        std::vector<std::string> titles;
        for (const Column& column : columns_) titles.push_back(column.title);
        append(titles, Style::Bold);
        for (const Line& line : lines_) append(line.cells, line.style);
        return result;
    }
    std::string markdown() const {
        std::string result = "|";
        for (const Column& column : columns_) result += " " + column.title + " |";
        result += "\n|";
        for (const Column& column : columns_) result += column.left ? ":---|" : "---:|";
        for (const Line& line : lines_) {
            result += "\n|";
            for (const std::string& cell : line.cells) {
                result += ' ';
                for (const char c : cell)  // "<module>" would be a tag, and two * stress what is between them
                    result += std::string_view("|\\<*`").find(c) != std::string_view::npos
                                  ? std::string{'\\', c}
                                  : std::string(1, c);
                result += " |";
            }
        }
        return result + "\n";
    }

  private:
    static constexpr std::size_t kGap = 2;
    static constexpr std::size_t kMinWidth = 12;  ///< of the flexible column

    struct Line {
        std::vector<std::string> cells;
        Style style;
    };
    std::vector<std::size_t> widths(const Terminal& terminal) const {
        std::vector<std::size_t> widths;
        std::size_t sum = 0;
        std::size_t flexible = columns_.size();
        for (std::size_t i = 0; i < columns_.size(); ++i) {
            std::size_t width = display_width(columns_[i].title);
            for (const Line& line : lines_) width = std::max(width, display_width(line.cells[i]));
            widths.push_back(width);
            sum += width + (i > 0 ? kGap : 0);
            if (columns_[i].flexible) flexible = i;
        }
        if (terminal.width > 0 && sum > terminal.width && flexible < columns_.size()) {
            const std::size_t others = sum - widths[flexible];
            const std::size_t room = terminal.width > others ? terminal.width - others : 0;
            widths[flexible] = std::min(widths[flexible], std::max(room, kMinWidth));
        }
        return widths;
    }

    std::vector<Column> columns_;
    std::vector<Line> lines_;
};

}  // namespace marey::cli
