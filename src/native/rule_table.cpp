// rule_table.cpp: the rules that lead from frames to their callers, by program counter.
#include "native/rule_table.h"

#include <sys/auxv.h>

#include <cstring>
#include <optional>

#include "native/loaded_modules.h"

namespace marey {

using rule_table::kAddressBits;
using rule_table::kIndexBits;
using rule_table::mixed;
using rule_table::rules;

constinit std::array<std::atomic<std::uint64_t>, std::size_t{1} << kIndexBits> rule_table::rules{};

namespace {

constinit std::atomic<std::uint32_t> generation{1};
constinit struct {
    std::atomic<std::uint64_t> looked_up{0};
    std::atomic<std::uint64_t> without_table{0};
    std::atomic<std::uint64_t> forgotten{0};
} counts;

// The order matters to keep(): whoever stores a rule afterwards sees the new number.
void forget_all() noexcept {
    generation.fetch_add(1, std::memory_order_seq_cst);
    for (auto& entry : rules) entry.store(0, std::memory_order_seq_cst);
    counts.forgotten.fetch_add(1, std::memory_order_relaxed);
}

void keep(std::uintptr_t pc, const FrameRule& rule, std::uint32_t seen) noexcept {
    const std::uint32_t bits = packed(rule);
    if (bits == 0 || pc >> kAddressBits != 0) return;
    const std::uint64_t hash = mixed(pc);
    std::atomic<std::uint64_t>& entry = rules[hash >> (kAddressBits - kIndexBits)];
    entry.store(hash << 32 | bits, std::memory_order_seq_cst);
    if (generation.load(std::memory_order_seq_cst) != seen) entry.store(0, std::memory_order_relaxed);
}

/// The modules whose rules may be in the table. None of them overlap.
struct KnownModules {
    struct Entry {
        std::atomic<std::uintptr_t> begin{0};
        std::atomic<std::uintptr_t> end{0};  ///< 0: free
        std::atomic<std::uint64_t> identity{0};
    };
    std::array<Entry, 1024> entries{};
    std::atomic<std::size_t> used{0};
    std::atomic_flag is_changing{};

    /// Adds it if it is new, and forgets all rules if it is where another module was. False: its rules cannot
    /// be kept now.
    bool add(const FrameTable& module) noexcept;
};
constinit KnownModules known;

bool KnownModules::add(const FrameTable& module) noexcept {
    for (std::size_t i = 0; i < used.load(std::memory_order_acquire); ++i) {
        if (entries[i].begin.load(std::memory_order_acquire) == module.begin &&
            entries[i].identity.load(std::memory_order_relaxed) == module.identity)
            return true;
    }
    if (is_changing.test_and_set(std::memory_order_acquire)) return false;
    const std::size_t count = used.load(std::memory_order_relaxed);
    bool is_replaced = false;
    Entry* room = nullptr;
    for (std::size_t i = 0; i < count; ++i) {
        Entry& entry = entries[i];
        if (entry.begin.load(std::memory_order_relaxed) < module.end &&
            module.begin < entry.end.load(std::memory_order_relaxed)) {
            entry.begin.store(0, std::memory_order_relaxed);
            entry.end.store(0, std::memory_order_relaxed);
            is_replaced = true;
        }
        if (entry.end.load(std::memory_order_relaxed) == 0) room = &entry;
    }
    if (is_replaced || (room == nullptr && count == entries.size())) forget_all();
    if (room == nullptr) {
        used.store(count % entries.size() + 1, std::memory_order_release);  // starts again when it is full
        room = &entries[count % entries.size()];
    }
    room->identity.store(module.identity, std::memory_order_relaxed);
    room->end.store(module.end, std::memory_order_relaxed);
    room->begin.store(module.begin, std::memory_order_release);
    is_changing.clear(std::memory_order_release);
    return true;
}

#if defined(__aarch64__)
/// Whether a signal handler returns to the instruction after `pc`. Linux does not describe that code, which
/// is its own, in .eh_frame; but debuggers know its bytes, so they do not change.
bool is_before_signal_return(const FrameTable& module, std::uintptr_t pc) noexcept {
    constexpr std::array<std::uint32_t, 2> kCode{0xd2801168, 0xd4000001};  // mov x8, #139; svc #0
    const std::uintptr_t begin = pc + 1;
    return module.begin == getauxval(AT_SYSINFO_EHDR) && begin + sizeof kCode <= module.end &&
           // NOLINTNEXTLINE(performance-no-int-to-ptr)
           std::memcmp(reinterpret_cast<const void*>(begin), kCode.data(), sizeof kCode) == 0;
}
#endif

FrameRule rule_in(const std::optional<FrameTable>& module, std::uintptr_t pc) noexcept {
    if (!module) return {};
#if defined(__aarch64__)
    if (is_before_signal_return(*module, pc)) return {.kind = FrameRule::Kind::signal};
#endif
    return module->header != 0 ? read_frame_rule(module->header, pc) : FrameRule{};
}

}  // namespace

std::uint32_t packed(const FrameRule& rule) noexcept {
    if (rule.kind == FrameRule::Kind::signal) return 0;  // too rare for a place among the bits
    const auto kind = static_cast<std::uint32_t>(rule.kind) << 1 | 1;
    if (rule.kind == FrameRule::Kind::unknown || rule.kind == FrameRule::Kind::end) return kind;
    const bool has_return = rule.return_address == FrameRule::Saved::in_memory;
    const bool has_pointer = rule.frame_pointer == FrameRule::Saved::in_memory;
    const int return_offset = has_return ? -rule.return_offset : 0;
    const int distance = has_pointer ? rule.frame_pointer_offset + return_offset : 0;
    if ((rule.cfa_offset | return_offset | distance) % 8 != 0 || rule.cfa_offset >= 8 << 13 ||
        return_offset < 0 || return_offset >= 8 << 10 || distance < -64 || distance >= 64)
        return 0;
    return kind | static_cast<std::uint32_t>(has_return) << 3 | static_cast<std::uint32_t>(has_pointer) << 4 |
           static_cast<std::uint32_t>(rule.cfa_offset / 8) << 5 |
           static_cast<std::uint32_t>(return_offset / 8) << 18 |
           static_cast<std::uint32_t>(distance / 8) << 28;
}

FrameRule look_up_frame_rule(std::uintptr_t pc) noexcept {
    return rule_in(frame_table_at(pc, true), pc);
}

FrameRule rule_table::missing(std::uintptr_t pc, bool may_lock) noexcept {
    counts.looked_up.fetch_add(1, std::memory_order_relaxed);
    const std::optional<FrameTable> module = frame_table_at(pc, may_lock);
    // Without a module it is code made at run time, in whose place other code may be soon.
    const bool may_keep = module && known.add(*module);
    const std::uint32_t seen = frame_rule_generation();
    const FrameRule rule = rule_in(module, pc);
    if (rule.kind == FrameRule::Kind::unknown) counts.without_table.fetch_add(1, std::memory_order_relaxed);
    if (may_keep) keep(pc, rule, seen);
    return rule;
}

std::uint32_t frame_rule_generation() noexcept {
    return generation.load(std::memory_order_acquire);
}

RuleCounts rule_counts() noexcept {
    return {counts.looked_up.load(std::memory_order_relaxed),
            counts.without_table.load(std::memory_order_relaxed),
            counts.forgotten.load(std::memory_order_relaxed)};
}

}  // namespace marey
