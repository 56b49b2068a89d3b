// gpu_work.h: the work of each device and the calls that launched it.
#pragma once

#include <optional>

#include <marey/gpu_use.h>
#include <marey/trace.h>

namespace marey {

inline constexpr std::uint32_t kNoIndex = ~std::uint32_t{0};

enum class GpuWorkKind : std::uint8_t { None, Kernel, Copy, Set, Other };

/// One piece of device work. Its times are clipped to the window.
struct GpuPiece {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::int64_t bytes = -1;  ///< of copies and memsets; -1: unknown
    Row range = kNoRow;
    Row call = kNoRow;               ///< call that launched it
    std::uint32_t stream = 0;        ///< index in GpuDeviceWork::streams
    std::uint32_t shape = kNoIndex;  ///< of kernels: index in GpuWork::shapes
    GpuWorkKind kind = GpuWorkKind::None;
    bool is_first = false;     ///< first piece that its call launched
    bool is_pageable = false;  ///< a copy from or to memory that is not pinned

    std::int64_t duration_ns() const noexcept { return end_ns - start_ns; }
};

struct GpuQueue {
    std::int64_t stream = -1;
    StringId name = 0;
};

struct GpuDeviceWork {
    Row process = 0;
    Device device{};
    std::vector<GpuQueue> streams;  ///< sorted by number
    std::vector<GpuPiece> pieces;   ///< sorted by start
};

struct GpuWork {
    std::vector<GpuDeviceWork> devices;  ///< sorted by process and device
    std::vector<GpuShape> shapes;
};

/// `device`: only devices with this number.
GpuWork collect_gpu_work(const Trace& trace, std::optional<std::int32_t> device);

}  // namespace marey
