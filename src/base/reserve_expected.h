// reserve_expected.h: reserves memory for an entire table, or for one of which a part is known, with few page
// faults.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace marey {

/// Asks the kernel to use 2 MiB pages for the part of a block that they cover. Only a hint: nothing changes
/// if it is ignored.
inline void advise_huge_pages(void* block, std::size_t bytes) noexcept {
#ifdef MADV_HUGEPAGE
    constexpr std::uintptr_t kPage = std::uintptr_t{2} << 20;
    const auto begin = reinterpret_cast<std::uintptr_t>(block);
    const std::uintptr_t first = (begin + kPage - 1) & ~(kPage - 1), end = (begin + bytes) & ~(kPage - 1);
    if (first < end) static_cast<void>(::madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE));
#else
    static_cast<void>(block);
    static_cast<void>(bytes);
#endif
}

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
