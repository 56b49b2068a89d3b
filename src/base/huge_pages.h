// huge_pages.h: memory that is filled completely, with fewer page faults.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

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

}  // namespace marey
