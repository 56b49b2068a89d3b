// range_lookup.h: for tests: finds ranges of a trace by name.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include <marey/all.h>

inline marey::Row find(const marey::Trace& trace, std::string_view name) {
    for (marey::Row row = 0; row < trace.ranges().size(); ++row) {
        if (trace.range_name(row) == name) return row;
    }
    return marey::kNoRow;
}

inline std::string parent_name(const marey::Trace& trace, std::string_view name) {
    const marey::Row row = find(trace, name);
    if (row == marey::kNoRow) return "(missing)";
    const marey::Row parent = trace.ranges().parent[row];
    return parent == marey::kNoRow ? "" : std::string(trace.range_name(parent));
}

inline bool has_flag(const marey::Trace& trace, std::string_view name, std::uint16_t flag) {
    const marey::Row row = find(trace, name);
    return row != marey::kNoRow && (trace.ranges().flags[row] & flag) != 0;
}

inline std::multiset<std::string> names(const marey::Trace& trace) {
    std::multiset<std::string> found;
    for (marey::Row row = 0; row < trace.ranges().size(); ++row) found.emplace(trace.range_name(row));
    return found;
}
