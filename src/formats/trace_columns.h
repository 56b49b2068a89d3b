// trace_columns.h: the tables of a trace as lists of columns, shared by CSV, Arrow and their documentation.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include <marey/trace.h>

#include "formats/range_places.h"

namespace marey {

/// The type of a cell. Numbers, booleans and doubles are returned as 64 bits.
enum class CellType : std::uint8_t {
    Bool,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Int32,
    Int64,
    Double,
    String,  ///< the number is a StringId of the trace
    Name,    ///< TraceColumn::name_of gives the name of the number
    Text,    ///< returned by TraceColumn::text
};

/// A column of one trace.
struct TraceColumn {
    std::string_view name;
    std::string meaning;  ///< for docs/reference/tables.md
    CellType type = CellType::Int64;
    std::uint32_t saved_id = 0;  ///< in a saved trace; 0: not saved as such
    /// For all types except Text.
    std::function<std::uint64_t(std::size_t row)> number{};
    std::function<std::string_view(std::size_t row)> text{};
    std::function<std::string_view(std::uint64_t number)> name_of{};
    /// Empty: the column has no null cells.
    std::function<bool(std::size_t row)> is_null{};
    /// The address of the column if it is stored contiguously with exactly this type. Null: it is not.
    const void* in_place = nullptr;
    /// Rows with equal numbers here have equal cells, so a cell needs to be found only once for each number.
    /// Null: unknown.
    const std::vector<std::uint32_t>* keys = nullptr;
    /// The end of a stretch of rows with equal cells that begins at `row`; need not look beyond `limit`.
    /// Empty: unknown.
    std::function<std::size_t(std::size_t row, std::size_t limit)> stretch_end{};
};

struct TraceTable {
    std::string_view name;
    std::string_view meaning;
    std::uint32_t saved_id = 0;
    bool is_exported = true;
    std::size_t rows = 0;
    std::vector<TraceColumn> columns{};
};

/// The tables of a trace: all columns of trace/columns.h, and those that are derived from them.
class TraceTables {
  public:
    explicit TraceTables(const Trace& trace);
    TraceTables(const TraceTables&) = delete;
    TraceTables& operator=(const TraceTables&) = delete;

    const Trace& trace() const noexcept { return trace_; }
    const std::vector<TraceTable>& all() const noexcept { return tables_; }
    /// Throws marey::Error, which lists the exported tables, if the name is unknown.
    const TraceTable& table(std::string_view name) const;

    /// The text of a cell of type String, Name or Text that is not null. May contain any bytes.
    std::string_view text(const TraceColumn& column, std::size_t row) const;

  private:
    using Columns = std::vector<TraceColumn>;
    using ThreadOfRow = std::function<Row(std::size_t row)>;

    TraceTable& find(std::string_view name);
    void insert(std::string_view table, std::string_view before, Columns columns);
    void add_site_columns(std::string_view table, const std::vector<std::uint32_t>& sites);
    Columns places(const ThreadOfRow& thread) const;
    void add_range_columns();
    void add_value_columns();
    void add_range_places();
    const RangePlaces& range_places() const;
    Columns values(const std::function<const Argument&(std::size_t row)>& value) const;

    /// The row of `arguments` in the model for each exported one: those of ranges first, each in row order.
    struct PlacedValue {
        Row row;
        std::uint32_t position;
        std::uint32_t argument;
        bool of_instant;
    };
    const PlacedValue& placed(std::size_t row);

    Trace trace_;
    std::vector<TraceTable> tables_;
    std::vector<PlacedValue> placed_;  ///< made when the first one is read; likewise:
    mutable std::unique_ptr<RangePlaces> range_places_;
};

}  // namespace marey
