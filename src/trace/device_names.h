// device_names.h: CUDA's names for kinds of copies, memory and waiting.
#pragma once

#include <cstdint>
#include <string_view>

namespace marey {

/// "Memcpy HtoD", ...; "Memcpy" for unknown numbers.
std::string_view copy_name(std::int64_t kind) noexcept;
/// "Pageable", "Pinned", ...; "" for unknown numbers. CUPTI (and nvprof) and Nsight number them differently.
std::string_view cupti_memory_kind(std::int64_t kind) noexcept;
std::string_view nsight_memory_kind(std::int64_t kind) noexcept;
/// "Event Sync", ...; "Sync" for unknown numbers.
std::string_view synchronization_name(std::int64_t kind) noexcept;

}  // namespace marey
