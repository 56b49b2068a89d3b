// gpu_occupancy.h: how much of a device a kernel can occupy.
#pragma once

#include <map>

#include <marey/gpu_use.h>
#include <marey/trace.h>

namespace marey {

/// Device properties from the trace (metadata `deviceProperties`, with the keys of PyTorch traces). 0:
/// unknown.
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

/// By device number. Empty if the metadata is not such a list.
std::map<std::int64_t, GpuProperties> gpu_properties(const Trace& trace);

/// docs/guide/gpu.md describes the formula.
GpuOccupancy estimate_occupancy(const GpuShape& shape, const GpuProperties& device);

}  // namespace marey
