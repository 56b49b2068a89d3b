// reserve_expected.h: reserves memory for an entire table, or for one of which a part is known.
#pragma once

#include <cstddef>
#include <vector>

#include "base/huge_pages.h"

namespace marey {

/// Reserves memory for a table that is going to be filled, with fewer page faults.
template <typename Entry>
void reserve_filled(std::vector<Entry>& table, std::size_t count) {
    if (count <= table.capacity()) return;
    table.reserve(count);
    advise_huge_pages(table.data(), table.capacity() * sizeof(Entry));
}

/// Reserves memory for a table when `fraction` (0 to 1) of it is there, so that it need not be moved as it
/// grows.
template <typename Entry>
void reserve_expected(std::vector<Entry>& table, double fraction) {
    constexpr std::size_t kTooFew = 4096;  // too few rows for an estimate
    if (fraction <= 0 || fraction >= 1 || table.size() <= kTooFew) return;
    reserve_filled(table, static_cast<std::size_t>(static_cast<double>(table.size()) / fraction * 1.05));
}

}  // namespace marey
