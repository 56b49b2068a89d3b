// gpu_occupancy.h: how much of a device a kernel can keep busy.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <marey/gpu_use.h>
#include <marey/trace.h>

namespace marey {

/// What a trace tells of a device (metadata `deviceProperties`, with the keys of PyTorch's traces). 0: not
/// told.
struct GpuProperties {
    std::string name;
    std::int64_t sm_count = 0;
    std::int64_t warp_size = 0;
    std::int64_t threads_per_sm = 0;
    std::int64_t registers_per_sm = 0;
    std::int64_t shared_bytes_per_sm = 0;
    std::int64_t compute_major = 0;
    std::int64_t compute_minor = 0;
};

/// By the number of the device. What is no such list tells nothing.
std::map<std::int64_t, GpuProperties> gpu_properties(const Trace& trace);

/// docs/guide/gpu.md gives the formula.
GpuOccupancy estimate_occupancy(const GpuShape& shape, const GpuProperties& device);

}  // namespace marey
