// column.h: what a column of the model is: its cells, its encoding, and where its values are.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "trace/trace_data.h"

namespace marey {

/// The tables, with their ids in saved traces (docs/formats/capture.md), which never change their meaning.
enum class ModelTable : std::uint8_t {
    Strings = 1,
    Sites,
    Processes,
    Threads,
    Tracks,
    Ranges,
    Instants,
    Counters,
    Arguments,
    ListItems,
    RangeArguments,
    InstantArguments,
    Arrays,
    ArrayExtents,
    RangeDetails,
    Links,
    Memory,
    Metadata,
    Problems,
    Costs,
    Clock,
    Window,
    Tasks,
    Messages,
    HostClocks = 30,
    ClockExchanges = 31,
    Samples = 32,
    Stacks = 33,
    Frames = 34,
    Sampling = 35,
};

struct TableInfo {
    ModelTable id;
    const char* name;
    const char* meaning;
    bool is_exported = true;
};

/// The kinds of cells. References are row numbers, which change when traces are joined.
enum class Cells : std::uint8_t {
    Number,
    Flag,
    Time,    ///< nanoseconds
    String,  ///< a row of the strings; likewise:
    Site,
    Process,
    Thread,
    Range,
    Instant,
    Stack,
    Frame,
    FirstArgument,  ///< the first of several rows
    FirstExtent,
};

/// Which numbers are null in exports.
enum class Null : std::uint8_t { Never, Zero, Negative, NoRow, Largest };

/// The encoding of a column's values.
enum class ColumnForm : std::uint8_t {
    Zeros = 0,    ///< nothing is stored: every row is 0
    Varints = 1,  ///< zigzag, 7 bits a byte, low first
    Planes = 2,   ///< split into byte planes, each packed by itself
    Texts = 3,    ///< the lengths as varints, then the bytes
};

/// A writer's preferred encoding for a column of numbers; a column of zeros is always written as Zeros.
struct NumberStyle {
    ColumnForm form = ColumnForm::Varints;
    bool differences = false;
};

struct ColumnOptions {
    Cells cells = Cells::Number;
    Null null = Null::Never;
    NumberStyle style{};
    const char* (*name_of)(std::uint64_t number) = nullptr;  ///< for enumerations
};

/// The rows of a table, or of one column. Tables that are not vectors have one row.
template <class Rows>
concept Vector = requires {
    typename Rows::value_type;
};
template <class Rows>
struct RowOf {
    using Type = Rows;
};
template <Vector Rows>
struct RowOf<Rows> {
    using Type = typename Rows::value_type;
};

template <class Rows, class Member>
struct Column : ColumnOptions {
    using Value = std::remove_cvref_t<std::invoke_result_t<Member, typename RowOf<Rows>::Type&>>;

    std::uint32_t id;  ///< in saved traces; 0: saved in another form, see saved_format.h
    const char* name;
    const char* meaning;
    Rows TraceData::*rows;  ///< of its table, or only of this column
    Member member;          ///< in a row

    decltype(auto) in(auto& data) const {
        if constexpr (Vector<Rows>) {
            return (data.*rows);
        } else {
            return std::span(&(data.*rows), 1);
        }
    }
};

}  // namespace marey
