// result_table.h: what an analysis found, as tables with described columns. Text, CSV, JSON, Markdown, Arrow,
// SQL and the viewer's answers all follow from the columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <marey/arrow.h>
#include <marey/detail/cxx20.h>
#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// The unit of the values of a column, which decides how people see them.
enum class ResultUnit : std::uint8_t {
    None,
    Duration,  ///< nanoseconds
    Time,      ///< nanoseconds on the clock of the trace; people see them from ResultTable::start_ns on
    Bytes,
    Count,
    Share,   ///< 0 to 1
    Change,  ///< relative to another value: 0.1 is 10% more
    Ratio,
    Flops,
    Auto,  ///< in declarations: told by the key and the type
};

enum class ResultType : std::uint8_t { Integer, Real, Flag, Text, Integers, Texts };

/// Whether and how a table for people shows a column if nobody chooses columns.
enum class ResultShown : std::uint8_t {
    No,
    Yes,
    Used,  ///< if it has a value
    Wide,  ///< if it has a value, where there is room for many columns
    Name,  ///< cut in the middle if the terminal is too narrow; one column at most
    Call,  ///< the same for calls: folders are removed first
};

struct ResultColumn {
    std::string key;
    std::string heading;  ///< for people; short, and clear only beside the others
    ResultUnit unit = ResultUnit::None;
    ResultType type = ResultType::Integer;
    std::string description;
    ResultShown shown = ResultShown::No;
    std::string absent;  ///< for people: what stands for null
    bool is_nullable = false;
    bool is_estimate = false;  ///< people see "~" before the values
    bool is_signed = false;    ///< people see "+" before positive values
};

/// A value of a table; the first alternative is null. Valid as long as the table.
using ResultCell = std::variant<std::monostate, std::int64_t, double, bool, std::string_view,
                                std::span<const std::int64_t>, std::span<const std::string>>;

/// The values of one column. Only the vector of its type is used; nulls have a value of no meaning in it.
struct ResultValues {
    std::vector<std::int64_t> integers;
    std::vector<double> reals;
    std::vector<bool> flags;
    std::vector<std::string> texts;
    std::vector<std::vector<std::int64_t>> integer_lists;
    std::vector<std::vector<std::string>> text_lists;
    std::vector<bool> nulls;
};

/// A table of a result. Rows that belong to those of another table have its keys as columns.
struct MAREY_API ResultTable {
    std::string name;  ///< the same in SQL
    std::string description;
    bool is_single = false;     ///< exactly one row: facts about the whole
    std::int64_t start_ns = 0;  ///< the beginning of the window
    std::vector<ResultColumn> columns;
    std::vector<ResultValues> values;  ///< one for each column
    std::size_t rows = 0;

    ResultCell cell(std::size_t row, std::size_t column) const;
    /// Throws marey::Error, which lists the columns, if there is no such key.
    std::size_t column(std::string_view key) const;
    /// Adds the rows of a table with the same columns.
    void append(const ResultTable& more);
    /// Returns these rows, in this order.
    ResultTable with_rows(std::span<const std::size_t> chosen) const;
    /// Returns these columns, in this order. Throws marey::Error if one does not exist.
    ResultTable with_columns(std::span<const std::string> keys) const;
    /// Returns the rows sorted by this column; equal rows keep their order, and nulls are the smallest
    /// values.
    ResultTable sorted(std::string_view key, bool ascending = false) const;
    /// Returns the first rows. 0: all.
    ResultTable limited(std::size_t count) const;
};

/// All tables of an analysis.
struct MAREY_API Result {
    std::vector<ResultTable> tables;

    /// Throws marey::Error if there is no such table.
    const ResultTable& table(std::string_view name) const;
};

/// Returns one object with a member for each table: an array of rows, or the row of a single one. The members
/// of a single table without a name are those of the object.
MAREY_API std::string result_json(const Result& result);
/// Returns a table as CSV (RFC 4180): a line with the keys, then one line per row. An empty field is null.
/// Lists are joined by ";", lists of numbers by "x".
MAREY_API std::string result_csv(const ResultTable& table);
/// Exports a table as a struct array; as export_arrow() does with the tables of a trace, but everything is
/// copied.
MAREY_API void export_arrow(const ResultTable& table, ArrowSchema* schema, ArrowArray* array);

/// The text of a value without its unit, as CSV has it; empty for null.
MAREY_API std::string result_text(const ResultCell& cell);

}  // namespace marey
