// gpu_busy.h: when work ran, when several pieces ran at once, and when none did.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analyze/gpu/gpu_work.h"

namespace marey {

struct IdleGap {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::uint32_t before = kNoIndex;  ///< the piece that ended then; kNoIndex: start of the window
    std::uint32_t after = kNoIndex;   ///< the piece that began then; kNoIndex: end of the window
};

struct BusyTimes {
    std::int64_t busy_ns = 0;
    std::int64_t kernel_ns = 0;      ///< at least one kernel ran
    std::int64_t copy_ns = 0;        ///< at least one copy ran
    std::int64_t overlap_ns = 0;     ///< a kernel and a copy ran
    std::int64_t concurrent_ns = 0;  ///< several kernels ran
    std::uint64_t most_concurrent = 0;
    std::vector<IdleGap> gaps;  ///< in order of time; never zero-length
};

/// Busy times of the `chosen` pieces (indices in order of start) between two times that enclose them.
/// Zero-length pieces do not fill gaps.
BusyTimes busy_times(const std::vector<GpuPiece>& pieces, std::span<const std::uint32_t> chosen,
                     std::int64_t from_ns, std::int64_t to_ns);

}  // namespace marey
