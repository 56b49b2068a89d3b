// frame_rule_cache.h: frame rules by program counter, for many readers at once.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/frame_rule.h"

namespace marey {

/// The rule at `pc`, remembered for the next time. Lock-free but for what it takes to read the loader's list.
FrameRule frame_rule_at(std::uintptr_t pc) noexcept;

/// 64 bits for a rule, never 0; what does not fit becomes unknown.
std::uint64_t packed(const FrameRule& rule) noexcept;
FrameRule unpacked(std::uint64_t bits) noexcept;

struct FrameRuleCounts {
    std::atomic<std::uint64_t> looked_up{0};
    std::atomic<std::uint64_t> without_table{0};
    std::atomic<std::uint64_t> forgotten{0};
};
FrameRuleCounts& frame_rule_counts() noexcept;

}  // namespace marey
