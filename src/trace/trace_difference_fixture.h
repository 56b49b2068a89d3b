// trace_difference_fixture.h: for tests: whether two traces are the same in every column of every table.
#pragma once

#include <algorithm>
#include <functional>
#include <string>

#include "trace/columns.h"
#include "trace/saved_format.h"

namespace marey::testing {

/// Compares numbers by their bits, so that a NaN equals itself.
template <class T>
bool is_same(const T& a, const T& b) {
    if constexpr (std::is_same_v<T, std::string>) {
        return a == b;
    } else {
        return saved::to_number(a) == saved::to_number(b);
    }
}

/// Compares what Argument::kind selects.
inline bool is_same_value(const Argument& a, const Argument& b) {
    return saved::raw_value(a) == saved::raw_value(b) &&
           (a.kind != ValueKind::List || a.list.count == b.list.count);
}

/// The first column that differs, as "table.column"; empty when none does.
inline std::string find_difference(const TraceData& a, const TraceData& b) {
    std::string found;
    const auto compare = [&](const std::string& name, const auto& x, const auto& y, const auto& same) {
        if (found.empty() && !std::equal(x.begin(), x.end(), y.begin(), y.end(), same)) found = name;
    };
    visit_columns([&](const TableInfo& table, const auto&... columns) {
        const auto one = [&](const auto& column) {
            compare(std::string(table.name) + "." + column.name, column.in(a), column.in(b),
                    [&](const auto& x, const auto& y) {
                        return is_same(std::invoke(column.member, x), std::invoke(column.member, y));
                    });
        };
        (one(columns), ...);
    });
    compare("arguments", a.arguments, b.arguments, is_same_value);
    compare("list_items", a.list_items, b.list_items, is_same_value);
    return found;
}

inline bool equal(const TraceData& a, const TraceData& b) {
    return find_difference(a, b).empty();
}

}  // namespace marey::testing
