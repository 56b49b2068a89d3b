// cuda_names.h: the words of CUDA for the numbers that profiles hold.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kymo {

/// The number of cudaLaunchKernel among the calls of the CUDA runtime.
inline constexpr std::int64_t kLaunchKernelCall = 211;

/// "cudaMalloc", ...; "CUDA runtime call 999" for numbers that have no name here.
std::string runtime_call_name(std::int64_t number);
std::string driver_call_name(std::int64_t number);
/// "Memcpy HtoD", ...; "Memcpy" for unknown numbers.
std::string_view copy_name(std::int64_t kind) noexcept;
/// "Pageable", "Pinned", ...; "" for unknown numbers. nvprof and Nsight count them differently.
std::string_view nvprof_memory_kind(std::int64_t kind) noexcept;
std::string_view nsight_memory_kind(std::int64_t kind) noexcept;
/// "Event Sync", ...; "Sync" for unknown numbers.
std::string_view synchronization_name(std::int64_t kind) noexcept;

}  // namespace kymo
