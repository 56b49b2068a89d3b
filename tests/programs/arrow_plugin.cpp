// arrow_plugin.cpp: exports the Arrow tables of a file through plain C, for tests/programs/arrow_check.py.
#include <cstdio>

#include <marey/arrow.h>
#include <marey/error.h>
#include <marey/import.h>

/// Returns 0, or 1 with the reason in `error`.
extern "C" __attribute__((visibility("default"))) int export_table(const char* path, const char* table,
                                                                   ArrowSchema* schema, ArrowArray* array,
                                                                   char* error, std::size_t error_bytes) {
    try {
        marey::export_arrow(marey::open_trace(path), table, schema, array);
        return 0;
    } catch (const marey::Error& failure) {
        std::snprintf(error, error_bytes, "%s", failure.what());
        return 1;
    }
}

/// The names of the tables, separated by spaces.
extern "C" __attribute__((visibility("default"))) void list_tables(char* names, std::size_t bytes) {
    std::size_t used = 0;
    for (const std::string_view name : marey::table_names()) {
        if (used + name.size() + 2 > bytes) break;
        used += static_cast<std::size_t>(
            std::snprintf(names + used, bytes - used, "%.*s ", static_cast<int>(name.size()), name.data()));
    }
}
