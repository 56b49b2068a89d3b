// gpu_busy.h: when work ran, when several pieces ran at once, and when none did.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analyze/gpu_work.h"

namespace marey {

struct IdleGap {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::uint32_t before = kNoIndex;  ///< the piece that ended then; kNoIndex: none, it is the window's start
    std::uint32_t after = kNoIndex;   ///< the piece that began then; kNoIndex: none, it is the window's end
};

struct BusyTimes {
    std::int64_t busy_ns = 0;
    std::int64_t kernel_ns = 0;      ///< some kernel ran
    std::int64_t copy_ns = 0;        ///< some copy ran
    std::int64_t overlap_ns = 0;     ///< a kernel and a copy ran
    std::int64_t concurrent_ns = 0;  ///< several kernels ran
    std::uint64_t most_concurrent = 0;
    std::vector<IdleGap> gaps;  ///< in order of time; none is empty
};

/// Of some pieces (their indices, in order of starts), between two times that hold them. Pieces without
/// length fill no gap.
BusyTimes busy_times(const std::vector<GpuPiece>& pieces, std::span<const std::uint32_t> chosen,
                     std::int64_t from_ns, std::int64_t to_ns);

}  // namespace marey
