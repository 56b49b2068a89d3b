// trace_ids.cpp: finds the ranges that belong to a distributed trace.
#include <marey/analyze.h>

#include "trace/trace_context.h"
#include "trace/trace_data.h"

namespace marey {

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
