// rule_table.h: the rules that lead from frames to their callers, by program counter, for many readers at
// once.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "native/frame_rule.h"

namespace marey {

/// The rule at `pc`, read from .eh_frame.
FrameRule look_up_frame_rule(std::uintptr_t pc) noexcept;

/// Changes whenever rules are forgotten.
std::uint32_t frame_rule_generation() noexcept;

/// A rule in 32 bits, 0 if it does not fit. Offsets are multiples of 8 and frames smaller than 64 KiB.
std::uint32_t packed(const FrameRule& rule) noexcept;

/// The rule that `bits`, which are not 0, contain.
inline FrameRule unpacked(std::uint32_t bits) noexcept {
    const int return_offset = -8 * static_cast<int>(bits >> 18 & 0x3ffU);
    return FrameRule{.kind = static_cast<FrameRule::Kind>(bits >> 1 & 3U),
                     .return_address = static_cast<FrameRule::Saved>(bits >> 3 & 1U),
                     .frame_pointer = static_cast<FrameRule::Saved>(bits >> 4 & 1U),
                     .return_offset = static_cast<std::int16_t>(return_offset),
                     .frame_pointer_offset = static_cast<std::int16_t>(
                         return_offset + 8 * (static_cast<std::int32_t>(bits) >> 28)),
                     .cfa_offset = static_cast<std::int32_t>(bits >> 5 & 0x1fffU) * 8};
}

namespace rule_table {

// An entry is a single word, so it is never seen in parts: the bits of the address that do not select the
// entry, and the rule.
inline constexpr unsigned kAddressBits = 48;
inline constexpr unsigned kIndexBits = 16;
extern std::array<std::atomic<std::uint64_t>, std::size_t{1} << kIndexBits> rules;

/// One to one: different addresses differ in the index, the high bits, or in the low ones.
inline std::uint64_t mixed(std::uintptr_t pc) noexcept {
    return pc * 0x9e3779b97f4a7c15ULL & ((std::uint64_t{1} << kAddressBits) - 1);
}

FrameRule missing(std::uintptr_t pc, bool may_lock) noexcept;

}  // namespace rule_table

/// The same, kept. Lock-free and async-signal-safe, except with `may_lock` before glibc 2.35: the loader's
/// list is read when there is a new library.
///
/// A rule is looked up once for each address and then found in a direct-mapped table. Rules are forgotten
/// when a library has taken the place of another one.
inline FrameRule frame_rule_at(std::uintptr_t pc, bool may_lock) noexcept {
    using namespace rule_table;
    const std::uint64_t hash = mixed(pc);
    const std::uint64_t entry = rules[hash >> (kAddressBits - kIndexBits)].load(std::memory_order_relaxed);
    if (entry >> 32 == (hash & 0xffffffff) && entry != 0 && pc >> kAddressBits == 0)
        return unpacked(static_cast<std::uint32_t>(entry));
    return missing(pc, may_lock);
}

struct RuleCounts {
    std::uint64_t looked_up, without_table, forgotten;
};
RuleCounts rule_counts() noexcept;

}  // namespace marey
