// result_argument.h: the options of every verb that prints a result, and a result's tables as text in
// columns.
#pragma once

#include <cstddef>
#include <optional>

#include <marey/result_table.h>

#include "cli/command_line.h"
#include "cli/table.h"
#include "cli/terminal.h"

namespace marey::cli {

/// How a table of a result becomes text.
struct ResultLayout {
    std::vector<std::string> keys{};  ///< columns; empty: those that are shown to people
    std::size_t limit = 0;            ///< rows; 0: all
    std::string row = "row";          ///< the word for rows that are left out
    std::string time_unit{};          ///< "s", "ms", "us"; otherwise chosen for each time
    std::string below{};  ///< a column of lists whose entries become lines below each row; empty: none
};

/// --json, --csv, --markdown, --columns, --sort, --ascending and --limit. --columns and --sort are about the
/// main table of a result, which is the one that --csv and --markdown print; --json prints all tables.
struct ResultArgument {
    std::string verb;             ///< for errors; also the name of the result
    std::string table;            ///< the main table
    std::size_t usual_limit = 0;  ///< of rows in text; 0: all
    std::string row = "row";      ///< the word for them
    std::string result{};         ///< the name of the result, if it is not that of the verb

    std::string columns{}, sort{};
    bool ascending = false;
    std::optional<std::uint64_t> limit{};
    bool json = false, csv = false, markdown = false;

    void declare(Options& options);
    /// Throws marey::Error if the options contradict each other, or if there is no such column.
    void check() const;
    bool is_data() const { return json || csv || markdown; }
    /// Whether columns or an order were chosen.
    bool chooses() const { return !columns.empty() || !sort.empty(); }
    /// Prints the result as data. Throws marey::Error if a column does not exist.
    void write(Result found) const;
    /// Prints the result as data, or text() as it is. Returns the exit code.
    int print(Result found, const auto& text) const {
        is_data() ? write(std::move(found)) : write_out(text());
        return kSuccess;
    }
    /// A table as text, with as many rows as --limit says and a line about those left out; empty if there are
    /// none.
    std::string lines(const ResultTable& table, const Terminal& terminal) const;
    /// The rows of the main table that --sort and --limit choose, with the columns of --columns.
    ResultTable chosen(const ResultTable& table) const;

  private:
    ResultTable sorted(const ResultTable& table) const;
};

Table result_in_columns(const ResultTable& table, const Terminal& terminal, const ResultLayout& layout = {});
/// The same as text, with a line about rows that are left out; empty if there are no rows.
std::string result_lines(const ResultTable& table, const Terminal& terminal, const ResultLayout& layout = {});

}  // namespace marey::cli
