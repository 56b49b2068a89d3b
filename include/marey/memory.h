// memory.h: allocators report allocations.
#pragma once

#include <cstdint>

#include <marey/detail/hot_path.h>
#include <marey/value.h>

namespace marey {

/// One allocation, free, or failed allocation.
struct MemoryReport {
    const void* address = nullptr;
    std::int64_t bytes = 0;  ///< negative: freed
    std::int64_t total_allocated = 0;
    std::int64_t total_reserved = 0;
    Device device;
    bool is_out_of_memory = false;  ///< `bytes` were requested and refused
};

namespace detail {
MAREY_API void report_memory(const MemoryReport& report) noexcept;
}

/// Returns true if allocation reports of the calling thread are recorded or observed.
inline bool is_recording_memory() noexcept {
    return (detail::load_relaxed(detail::current_thread->armed) & detail::kArmedMemory) != 0;
}

/// Reports an allocation (`bytes` > 0) or a free (`bytes` < 0). Allocators call it afterwards, from any
/// thread. The totals are those of the allocator for that device. Costs only a flag test if nothing records
/// it.
inline void report_allocation(const void* address, std::int64_t bytes, std::int64_t total_allocated,
                              std::int64_t total_reserved, Device device = {}) noexcept {
    if (is_recording_memory())
        detail::report_memory({address, bytes, total_allocated, total_reserved, device, false});
}
/// Reports an allocation that the allocator had to refuse.
inline void report_out_of_memory(std::int64_t bytes, std::int64_t total_allocated,
                                 std::int64_t total_reserved, Device device = {}) noexcept {
    if (is_recording_memory())
        detail::report_memory({nullptr, bytes, total_allocated, total_reserved, device, true});
}

}  // namespace marey
