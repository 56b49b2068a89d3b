// trace_columns.h: the tables of a trace as lists of columns, shared by CSV and Arrow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <marey/trace.h>

#include "trace/trace_data.h"

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

/// A trace whose tables are read, and data that is computed once for them.
class TableSource {
  public:
    explicit TableSource(const Trace& trace);

    const Trace& trace() const noexcept { return trace_; }
    const TraceData& data() const noexcept { return trace_.data(); }

    /// A value of a range or an instant: ranges first, each in row order.
    struct PlacedValue {
        const ArgumentSlice* slice;
        std::uint32_t position;
        bool of_instant;
        const Argument& value;
    };
    std::size_t value_count() const noexcept { return ends_.empty() ? 0 : ends_.back(); }
    PlacedValue value(std::size_t row) const;

    /// The track of a range; a dummy track on thread 0 if the range is not on any track.
    const TrackInfo& track_of(std::size_t range) const;
    /// Null if there is none.
    const ThreadInfo* thread(Row row) const;
    const ProcessInfo* process_of_thread(Row row) const;

  private:
    Trace trace_;
    std::vector<std::size_t> ends_;  ///< end of the values of each slice
};

struct TraceColumn {
    std::string_view name;
    CellType type = CellType::Int64;
    /// For all types except Text.
    std::uint64_t (*number)(const TableSource&, std::size_t row) = nullptr;
    std::string_view (*text)(const TableSource&, std::size_t row) = nullptr;
    const char* (*name_of)(std::uint64_t number) = nullptr;
    /// Null: the column has no null cells.
    bool (*is_null)(const TableSource&, std::size_t row) = nullptr;
    /// The address of the column if it is stored contiguously with exactly this type. Null: it is not.
    const void* (*in_place)(const TraceData&) = nullptr;
};

struct TraceTable {
    std::string_view name;
    std::size_t (*rows)(const TableSource&);
    std::span<const TraceColumn> columns;
};

std::span<const TraceTable> trace_tables() noexcept;
/// Throws marey::Error, which lists the known tables, if the name is unknown.
const TraceTable& trace_table(std::string_view name);

/// The text of a cell of type String, Name or Text that is not null. May contain any bytes.
std::string_view cell_text(const TableSource& source, const TraceColumn& column, std::size_t row);

}  // namespace marey
