// range_lookup.h: finding ranges of a trace by their names, for tests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <kymo/kymo.h>

inline kymo::Row find(const kymo::Trace& trace, std::string_view name) {
    for (kymo::Row row = 0; row < trace.ranges().size(); ++row) {
        if (trace.range_name(row) == name) return row;
    }
    return kymo::kNoRow;
}

inline std::string parent_name(const kymo::Trace& trace, std::string_view name) {
    const kymo::Row row = find(trace, name);
    if (row == kymo::kNoRow) return "(missing)";
    const kymo::Row parent = trace.ranges().parent[row];
    return parent == kymo::kNoRow ? "" : std::string(trace.range_name(parent));
}

inline bool has_flag(const kymo::Trace& trace, std::string_view name, std::uint16_t flag) {
    const kymo::Row row = find(trace, name);
    return row != kymo::kNoRow && (trace.ranges().flags[row] & flag) != 0;
}
