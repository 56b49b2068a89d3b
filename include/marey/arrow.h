// arrow.h: the tables of a trace through the Arrow C data interface: for pyarrow, pandas, Polars, DuckDB and
// the like, in the same process and mostly without copying.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <marey/detail/export.h>
#include <marey/export.h>
#include <marey/trace.h>

// The ABI, as https://arrow.apache.org/docs/format/CDataInterface.html fixes it.
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

extern "C" {

struct ArrowSchema {
    const char* format;
    const char* name;
    const char* metadata;
    std::int64_t flags;
    std::int64_t n_children;
    struct ArrowSchema** children;
    struct ArrowSchema* dictionary;
    void (*release)(struct ArrowSchema*);
    void* private_data;
};

struct ArrowArray {
    std::int64_t length;
    std::int64_t null_count;
    std::int64_t offset;
    std::int64_t n_buffers;
    std::int64_t n_children;
    const void** buffers;
    struct ArrowArray** children;
    struct ArrowArray* dictionary;
    void (*release)(struct ArrowArray*);
    void* private_data;
};

}  // extern "C"

#endif  // ARROW_C_DATA_INTERFACE

namespace marey {

/// The names that export_arrow takes: those of table_names().
inline std::span<const std::string_view> arrow_tables() noexcept {
    return table_names();
}

/// Fills both with a struct array that has one child for each column; docs/reference/tables.md describes them. Columns
/// that the trace has in one piece are not copied: the array keeps the trace alive until it is released.
/// Names are dictionaries of int32 and large utf8; bytes that are no UTF-8 become U+FFFD. The caller releases
/// both, or hands them on. Throws marey::Error, and then both are released.
MAREY_API void export_arrow(const Trace& trace, std::string_view table, ArrowSchema* schema,
                            ArrowArray* array);

}  // namespace marey
