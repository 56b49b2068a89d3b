// memory.h: allocators say what they give and take.
#pragma once

#include <cstdint>

#include <marey/detail/hot_path.h>
#include <marey/value.h>

namespace marey {

/// One allocation, release or refusal.
struct MemoryReport {
    const void* address = nullptr;
    std::int64_t bytes = 0;  ///< negative: released
    std::int64_t total_allocated = 0;
    std::int64_t total_reserved = 0;
    Device device;
    bool is_out_of_memory = false;  ///< `bytes` were asked for and refused
};

namespace detail {
MAREY_API void report_memory(const MemoryReport& report) noexcept;
}

/// True when allocation reports of the calling thread are recorded or observed.
inline bool is_recording_memory() noexcept {
    return (detail::load_relaxed(detail::current_thread->armed) & detail::kArmedMemory) != 0;
}

/// To be called by an allocator, from any thread, after it has given (`bytes` > 0) or taken back (`bytes` <
/// 0) memory. Totals are the allocator's own for that device. A flag test when nobody asks.
inline void report_allocation(const void* address, std::int64_t bytes, std::int64_t total_allocated,
                              std::int64_t total_reserved, Device device = {}) noexcept {
    if (is_recording_memory())
        detail::report_memory({address, bytes, total_allocated, total_reserved, device, false});
}
/// When it had to refuse.
inline void report_out_of_memory(std::int64_t bytes, std::int64_t total_allocated,
                                 std::int64_t total_reserved, Device device = {}) noexcept {
    if (is_recording_memory())
        detail::report_memory({nullptr, bytes, total_allocated, total_reserved, device, true});
}

}  // namespace marey
