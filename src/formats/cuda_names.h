// cuda_names.h: the names of CUDA calls by the numbers in profiles.
#pragma once

#include <cstdint>
#include <string>

#include "trace/device_names.h"  // shared with recordings

namespace marey {

/// The number of cudaLaunchKernel among the CUDA runtime calls.
inline constexpr std::int64_t kLaunchKernelCall = 211;

/// "cudaMalloc", ...; "CUDA runtime call 999" for unknown numbers.
std::string runtime_call_name(std::int64_t number);
std::string driver_call_name(std::int64_t number);

}  // namespace marey
