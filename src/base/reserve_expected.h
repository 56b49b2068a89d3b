// reserve_expected.h: room for all of a table of which a part is there.
#pragma once

#include <cstddef>
#include <vector>

#include "base/huge_pages.h"

namespace marey {

/// Makes room for a table of which `fraction` (0 to 1) is there, so that it need not be moved as it grows.
template <typename Entry>
void reserve_expected(std::vector<Entry>& table, double fraction) {
    constexpr std::size_t kTooFew = 4096;  // to tell anything from
    if (fraction <= 0 || fraction >= 1 || table.size() <= kTooFew) return;
    const auto all = static_cast<std::size_t>(static_cast<double>(table.size()) / fraction * 1.05);
    if (all <= table.capacity()) return;
    table.reserve(all);
    advise_huge_pages(table.data(), table.capacity() * sizeof(Entry));
}

}  // namespace marey
