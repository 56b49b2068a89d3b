// arrow_plugin.cpp: the Arrow tables of a file through plain C, for tests/arrow_check.py.
#include <cstdio>

#include <kymo/arrow.h>
#include <kymo/error.h>
#include <kymo/import.h>

/// Returns 0, or 1 with the reason in `error`.
extern "C" __attribute__((visibility("default"))) int export_table(const char* path, const char* table,
                                                                   ArrowSchema* schema, ArrowArray* array,
                                                                   char* error, std::size_t error_bytes) {
    try {
        kymo::export_arrow(kymo::open_trace(path), table, schema, array);
        return 0;
    } catch (const kymo::Error& failure) {
        std::snprintf(error, error_bytes, "%s", failure.what());
        return 1;
    }
}

/// The names of the tables, one after another with spaces between.
extern "C" __attribute__((visibility("default"))) void list_tables(char* names, std::size_t bytes) {
    std::size_t used = 0;
    for (const std::string_view name : kymo::arrow_tables()) {
        if (used + name.size() + 2 > bytes) break;
        used += static_cast<std::size_t>(
            std::snprintf(names + used, bytes - used, "%.*s ", static_cast<int>(name.size()), name.data()));
    }
}
