// found_result.cpp: the columns of what `marey find` finds.
#include <algorithm>

#include <marey/results.h>

#include "analyze/result_keys.h"

namespace marey {
namespace found_columns {
namespace {

using enum ResultUnit;
using enum ResultShown;

struct FoundRow {
    const Trace& trace;
    Row row;
    const std::string& file;
    Row thread() const { return trace.tracks()[trace.track_of(row)].thread; }
};
ResultRows<FoundRow> found_table() {
    ResultRows<FoundRow> table("found_ranges", "Ranges that were found in files");
    table.columns({
        {"at_ns",
         [](auto& r) {
             const std::int64_t start = r.trace.ranges().start_ns[r.row];
             return std::max<std::int64_t>(start - r.trace.window().start_ns, 0);
         },
         "start, since the start of the window", "at"},
        {"duration_ns", [](auto& r) { return r.trace.ranges().duration_ns[r.row]; }, "length", "duration"},
        {"pid", [](auto& r) { return process_id(r.trace, r.trace.threads()[r.thread()].process); },
         "process id", "process", Yes, None},
    });
    table.columns(thread_key<FoundRow>());
    table.columns({
        {"name", [](auto& r) { return std::string(r.trace.range_name(r.row)); }, "name of the range", "name"},
        {"file", [](auto& r) { return r.file; }, "the file", "file", Name},
        {"row", [](auto& r) { return r.row; }, "row of the range in its file", "", No, None},
    });
    return table;
}

}  // namespace
}  // namespace found_columns

Result found_result(const Trace& trace, std::span<const Row> rows, const std::string& file) {
    auto found = found_columns::found_table();
    for (const Row row : rows) found.add({trace, row, file});
    return made_result(trace, found);
}

}  // namespace marey
