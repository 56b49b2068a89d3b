// gpu_tables.h: the parts of the GPU report that gpu_use() combines.
#pragma once

#include <marey/gpu_use.h>

#include "analyze/gpu/gpu_host.h"
#include "analyze/gpu/gpu_occupancy.h"
#include "analyze/gpu/gpu_work.h"

namespace marey {

inline constexpr std::int64_t kShortKernelNs = 10'000;
inline constexpr std::int64_t kShortGapNs = 100'000;
inline constexpr double kLowOccupancy = 0.25;

/// A device gap and the thread that caused it (kNoRow: unknown).
struct ThreadGap {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    Row thread = kNoRow;
};

/// Adds kernels, transfers and launchers of a device. `properties` may be null.
void add_gpu_tables(const HostRanges& host, const GpuDeviceWork& work, const std::vector<GpuShape>& shapes,
                    const GpuProperties* properties, GpuDevice& device);

/// The device API calls of the host, by name.
std::vector<GpuCall> gpu_calls(const HostRanges& host);
/// `gaps`: per device, in order of time.
std::vector<GpuWaits> gpu_waits(const HostRanges& host, const std::vector<std::vector<ThreadGap>>& gaps);

/// The findings listed in docs/guide/gpu.md, in that order for each device, then for each thread.
std::vector<GpuFinding> gpu_findings(const Trace& trace, const GpuUse& use);

}  // namespace marey
