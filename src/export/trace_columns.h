// trace_columns.h: the tables of a trace as lists of columns: the one definition behind CSV and Arrow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <marey/trace.h>

#include "trace/trace_data.h"

namespace marey {

/// What a cell is. Numbers, booleans and doubles are given as 64 bits.
enum class CellType : std::uint8_t {
    Bool,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Int32,
    Int64,
    Double,
    String,  ///< its number is a StringId of the trace
    Name,    ///< its number has a name in TraceColumn::name_of
    Text,    ///< given by TraceColumn::text
};

/// A trace whose tables are read, and what is worked out once for them.
class TableSource {
  public:
    explicit TableSource(const Trace& trace);

    const Trace& trace() const noexcept { return trace_; }
    const TraceData& data() const noexcept { return trace_.data(); }

    /// The values of ranges, then those of instants, in order of their rows.
    struct PlacedValue {
        const ArgumentSlice* slice;
        std::uint32_t position;
        bool of_instant;
        const Argument& value;
    };
    std::size_t value_count() const noexcept { return ends_.empty() ? 0 : ends_.back(); }
    PlacedValue value(std::size_t row) const;

    /// Of a range; a track without ranges, on thread 0, for what is on none.
    const TrackInfo& track_of(std::size_t range) const;
    /// Null when there is none.
    const ThreadInfo* thread(Row row) const;
    const ProcessInfo* process_of_thread(Row row) const;

  private:
    Trace trace_;
    std::vector<std::size_t> ends_;  ///< of the values of each slice
};

struct TraceColumn {
    std::string_view name;
    CellType type = CellType::Int64;
    /// Of all types but Text.
    std::uint64_t (*number)(const TableSource&, std::size_t row) = nullptr;
    std::string_view (*text)(const TableSource&, std::size_t row) = nullptr;
    const char* (*name_of)(std::uint64_t number) = nullptr;
    /// Null: no cell is null.
    bool (*is_null)(const TableSource&, std::size_t row) = nullptr;
    /// Where the model has the column in one piece, in exactly this type. Null: nowhere.
    const void* (*in_place)(const TraceData&) = nullptr;
};

struct TraceTable {
    std::string_view name;
    std::size_t (*rows)(const TableSource&);
    std::span<const TraceColumn> columns;
};

std::span<const TraceTable> trace_tables() noexcept;
/// Throws marey::Error, which lists the known ones, when there is none of that name.
const TraceTable& trace_table(std::string_view name);

/// The text of a cell of type String, Name or Text that is not null: any bytes.
std::string_view cell_text(const TableSource& source, const TraceColumn& column, std::size_t row);

}  // namespace marey
