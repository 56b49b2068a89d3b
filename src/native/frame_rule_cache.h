// frame_rule_cache.h: frame rules by program counter, for many readers at once.
#pragma once

#include <atomic>
#include <cstdint>

#include "native/frame_rule.h"

namespace marey {

/// The rule at `pc`, cached. Lock-free except for reading the loader's list.
FrameRule frame_rule_at(std::uintptr_t pc) noexcept;

/// A rule in 64 bits, never 0; a rule that does not fit becomes unknown.
std::uint64_t packed(const FrameRule& rule) noexcept;
FrameRule unpacked(std::uint64_t bits) noexcept;

struct FrameRuleCounts {
    std::atomic<std::uint64_t> looked_up{0};
    std::atomic<std::uint64_t> without_table{0};
    std::atomic<std::uint64_t> forgotten{0};
};
FrameRuleCounts& frame_rule_counts() noexcept;

}  // namespace marey
