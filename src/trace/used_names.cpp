// used_names.cpp: marks the names in use, then compacts the tables.
#include "trace/used_names.h"

#include <algorithm>
#include <utility>

#include "trace/columns.h"

namespace marey {
namespace {

/// Removes the rows to which no cell refers, if at least `few` and half of them are of that kind. False: they
/// stay.
template <class Row>
bool drop_unused(TraceData& data, std::vector<Row>& table, Cells cells, std::size_t few) {
    std::vector<std::uint32_t> numbers(table.size());  // 1: in use; then the new number
    if (cells == Cells::String && !numbers.empty()) numbers[0] = 1;
    for_each_reference(data, cells, [&](std::uint32_t old) {
        if (old < numbers.size()) numbers[old] = 1;
    });
    const auto used = static_cast<std::size_t>(std::ranges::count(numbers, 1u));
    if (few != 0 && table.size() < 2 * used + few) return false;
    std::uint32_t next = 0;
    for (std::size_t old = 0; old < numbers.size(); ++old) {
        if (numbers[old] == 0) continue;
        if (next != old) table[next] = std::move(table[old]);
        numbers[old] = next++;
    }
    table.resize(next);
    for_each_reference(data, cells, [&](std::uint32_t& number) {
        if (number < numbers.size()) number = numbers[number];
    });
    return true;
}

}  // namespace

void drop_unused_names(TraceData& data, std::size_t few) {
    if (drop_unused(data, data.sites, Cells::Site, few)) drop_unused_strings(data);
}

void drop_unused_strings(TraceData& data) {
    drop_unused(data, data.strings, Cells::String, 0);
}

}  // namespace marey
