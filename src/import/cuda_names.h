// cuda_names.h: the names of CUDA's calls by the numbers that profiles hold.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/device_names.h"  // what profiles share with recordings

namespace marey {

/// The number of cudaLaunchKernel among the calls of the CUDA runtime.
inline constexpr std::int64_t kLaunchKernelCall = 211;

/// "cudaMalloc", ...; "CUDA runtime call 999" for numbers that have no name here.
std::string runtime_call_name(std::int64_t number);
std::string driver_call_name(std::int64_t number);

}  // namespace marey
