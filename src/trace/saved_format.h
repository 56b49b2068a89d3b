// saved_format.h: the parts that the writer and the reader of saved traces share: sizes, and numbers for
// values of any type.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <marey/error.h>

#include "trace/column_codec.h"
#include "trace/columns.h"
#include "trace/trace_data.h"

namespace marey::saved {

inline constexpr char kMagic[8] = {'M', 'A', 'R', 'E', 'Y', 'T', 'R', 'C'};
inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kHeaderBytes = 48;
inline constexpr std::size_t kEntryBytes = 40;

// Upper bound of the expansion: a reader need not trust stated sizes, and a writer pads the file to stay
// within it.
inline constexpr std::uint64_t kFreeBytes = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kMaxExpansion = 256;

/// Columns of the range table, see range_codec.h.
enum RangeColumn : std::uint32_t {
    kDepth = 1,
    kParent,
    kSite,
    kFlags,
    kGaps,
    kHeads,
    kDurations,
    kTails,
    kSelf
};

/// Columns of values in addition to those in columns.h: the value itself, for lists their first item; and
/// their length.
inline constexpr std::uint32_t kValue = 6;
inline constexpr std::uint32_t kItemCount = 7;

inline std::uint32_t column_id(ModelTable table, std::uint32_t column) noexcept {
    return static_cast<std::uint32_t>(table) << 8 | column;
}

inline std::uint64_t unpacked_bytes(const ColumnEntry& entry) noexcept {
    return entry.rows * sizeof(std::uint64_t) + entry.bytes;
}

template <class T>
std::uint64_t to_number(const T& value) {
    if constexpr (std::is_same_v<T, double>) {
        return std::bit_cast<std::uint64_t>(value);
    } else if constexpr (std::is_enum_v<T>) {
        return static_cast<std::uint64_t>(value);
    } else {
        return static_cast<std::uint64_t>(std::int64_t(value));
    }
}

template <class T>
T from_number(std::uint64_t number) {
    if constexpr (std::is_same_v<T, double>) {
        return std::bit_cast<double>(number);
    } else if constexpr (std::is_enum_v<T>) {
        return static_cast<T>(from_number<std::underlying_type_t<T>>(number));
    } else {
        const bool fits =
            std::is_signed_v<T>
                ? static_cast<std::int64_t>(number) >= std::int64_t(std::numeric_limits<T>::min()) &&
                      static_cast<std::int64_t>(number) <= std::int64_t(std::numeric_limits<T>::max())
                : number <= std::uint64_t{std::numeric_limits<T>::max()};
        if (!fits) throw Error("a number does not fit its column");
        return static_cast<T>(number);
    }
}

/// Values of lists and arrays are relative to the previous one of their kind: nearly all become 0.
class ValueBase {
  public:
    std::uint64_t& of(ValueKind kind) noexcept {
        return kind == ValueKind::List ? list_ : kind == ValueKind::Array ? array_ : (none_ = 0);
    }
    void saw(const Argument& value) noexcept {
        if (value.kind == ValueKind::List) list_ = std::uint64_t{value.list.first} + value.list.count;
        if (value.kind == ValueKind::Array) array_ = std::uint64_t{value.array} + 1;
    }

  private:
    std::uint64_t list_ = 0, array_ = 0, none_ = 0;
};

inline std::uint64_t raw_value(const Argument& value) {
    switch (value.kind) {
        case ValueKind::Bool:
            return to_number(value.boolean);
        case ValueKind::Int:
            return to_number(value.integer);
        case ValueKind::Double:
            return to_number(value.real);
        case ValueKind::String:
            return value.string;
        case ValueKind::List:
            return value.list.first;
        case ValueKind::Array:
            return value.array;
        case ValueKind::None:
            break;
    }
    return 0;
}

inline void set_value(Argument& value, std::uint64_t number, std::uint64_t count) {
    switch (value.kind) {
        case ValueKind::Bool:
            value.boolean = from_number<bool>(number);
            break;
        case ValueKind::Int:
            value.integer = from_number<std::int64_t>(number);
            break;
        case ValueKind::Double:
            value.real = from_number<double>(number);
            break;
        case ValueKind::String:
            value.string = from_number<StringId>(number);
            break;
        case ValueKind::List:
            value.list = {from_number<std::uint32_t>(number), from_number<std::uint32_t>(count)};
            break;
        case ValueKind::Array:
            value.array = from_number<Row>(number);
            break;
        default:
            break;
    }
}

}  // namespace marey::saved
