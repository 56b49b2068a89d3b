// found_result.cpp: finds the ranges of a distributed trace; the columns of what `marey find` finds.
#include <algorithm>

#include <marey/analyze.h>
#include <marey/results.h>

#include "analyze/result_keys.h"
#include "trace/trace_context.h"
#include "trace/trace_data.h"

namespace marey {
namespace {

struct FoundRow {
    const Trace& trace;
    Row row;
    const std::string& file;
    Row thread() const { return trace.tracks()[trace.track_of(row)].thread; }
};

}  // namespace

Result found_result(const Trace& trace, std::span<const Row> rows, const std::string& file) {
    using enum ResultUnit;
    using enum ResultShown;
    ResultRows<FoundRow> found("found_ranges", "Ranges that were found in files");
    found.columns({
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
    found.columns(thread_key<FoundRow>());
    found.columns({
        {"name", [](auto& r) { return std::string(r.trace.range_name(r.row)); }, "name of the range", "name"},
        {"file", [](auto& r) { return r.file; }, "the file", "file", Name},
        {"row", &FoundRow::row, "row of the range in its file", "", No, None},
    });
    for (const Row row : rows) found.add({trace, row, file});
    return made_result(trace, found);
}

std::vector<Row> ranges_with_trace_id(const Trace& trace, std::string_view id_start) {
    constexpr std::size_t kIdPlace = 3, kIdSize = 32;  // in the header traceparent
    std::vector<Row> found;
    for (const ArgumentSlice& slice : trace.data().range_arguments) {
        for (const Argument& value : trace.range_arguments(slice.row)) {
            if (value.kind != ValueKind::String) continue;
            const std::string_view key = trace.string(value.key), text = trace.string(value.string);
            std::string_view id;
            if (key == kTraceIdKey && parse_trace_id(text)) id = text;
            if (key == kTraceParentKey && parse_traceparent(text)) id = text.substr(kIdPlace, kIdSize);
            if (id.empty() || !id.starts_with(id_start)) continue;
            found.push_back(slice.row);
            break;
        }
    }
    return found;
}

}  // namespace marey
