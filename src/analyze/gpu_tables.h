// gpu_tables.h: the parts of a report about devices that gpu_use() puts together.
#pragma once

#include <cstdint>
#include <vector>

#include <marey/gpu_use.h>

#include "analyze/gpu_host.h"
#include "analyze/gpu_occupancy.h"
#include "analyze/gpu_work.h"

namespace marey {

inline constexpr std::int64_t kShortKernelNs = 10'000;
inline constexpr std::int64_t kShortGapNs = 100'000;
inline constexpr double kLowOccupancy = 0.25;

/// A gap of a device and the thread that it is due to (kNoRow: not known).
struct ThreadGap {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    Row thread = kNoRow;
};

/// Kernels, transfers and launchers of a device. `properties` may be null.
void add_gpu_tables(const HostRanges& host, const GpuDeviceWork& work, const std::vector<GpuShape>& shapes,
                    const GpuProperties* properties, GpuDevice& device);

/// The host calls that drive devices, by name.
std::vector<GpuCall> gpu_calls(const HostRanges& host);
/// `gaps`: of each device, in order of time.
std::vector<GpuWaits> gpu_waits(const HostRanges& host, const std::vector<std::vector<ThreadGap>>& gaps);

/// What docs/guide/gpu.md lists, in its order for each device, then for each thread.
std::vector<GpuFinding> gpu_findings(const Trace& trace, const GpuUse& use);

}  // namespace marey
