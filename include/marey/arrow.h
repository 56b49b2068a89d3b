// arrow.h: the tables of a trace through the Arrow C data interface, for pyarrow, pandas, Polars, DuckDB and
// similar libraries in the same process, mostly without copying.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <marey/detail/export.h>
#include <marey/export.h>
#include <marey/trace.h>

// The ABI defined at https://arrow.apache.org/docs/format/CDataInterface.html.
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

// The ABI defined at https://arrow.apache.org/docs/format/CStreamInterface.html.
#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

extern "C" {

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
    int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
    const char* (*get_last_error)(struct ArrowArrayStream*);
    void (*release)(struct ArrowArrayStream*);
    void* private_data;
};

}  // extern "C"

#endif  // ARROW_C_STREAM_INTERFACE

namespace marey {

/// Exports one of table_names() as a struct array with one child per column; docs/reference/tables.md
/// describes the columns. Columns that are contiguous in the trace are not copied: the array keeps the trace
/// alive until it is released. Names are dictionaries with int32 indexes and large utf8 values; invalid UTF-8
/// becomes U+FFFD. The caller releases both structures or passes them on. Throws marey::Error and leaves both
/// released if it fails.
MAREY_API void export_arrow(const Trace& trace, std::string_view table, ArrowSchema* schema,
                            ArrowArray* array);
/// Exports only the named columns, in that order; the others cost nothing. Empty: all columns.
MAREY_API void export_arrow(const Trace& trace, std::string_view table,
                            const std::vector<std::string>& columns, ArrowSchema* schema, ArrowArray* array);
/// Exports the schema of these columns alone.
MAREY_API void export_arrow_schema(const Trace& trace, std::string_view table,
                                   const std::vector<std::string>& columns, ArrowSchema* schema);
/// Exports these columns in batches of at most `batch_rows` rows, which are made as they are read; 0: one
/// batch. Each batch has dictionaries of its own. The stream keeps the trace alive, and reports errors when
/// it is read.
MAREY_API void export_arrow_stream(const Trace& trace, std::string_view table,
                                   std::vector<std::string> columns, std::size_t batch_rows,
                                   ArrowArrayStream* stream);

}  // namespace marey
