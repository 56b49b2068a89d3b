// frame_rule_cache.cpp: frame rules by program counter, for many readers at once.
#include "native/frame_rule_cache.h"

#include <array>
#include <new>

#include "native/loaded_modules.h"

namespace marey {
namespace {

constexpr std::size_t kProbes = 16;
constexpr std::size_t kFirstSize = 1024;
constexpr std::size_t kTables = 11;  // each twice the one before: two million addresses, 32 MiB at the most

/// A slot takes an address once and for ever; its rule is 0 until it is known, and again after libraries were
/// unloaded.
struct Place {
    std::atomic<std::uintptr_t> pc{0};
    std::atomic<std::uint64_t> rule{0};
};

/// Tables are only added: an address without a free slot near its own in one table goes to the next, larger
/// one.
std::array<std::atomic<Place*>, kTables> tables{};
std::atomic<unsigned long long> unloads_seen{0};

std::size_t size_of(std::size_t table) noexcept {
    return kFirstSize << table;
}

std::size_t hash_of(std::uintptr_t pc) noexcept {
    return (pc * 0x9e3779b97f4a7c15ULL) >> 20;
}

/// The slot of `pc`, or null; takes a free one if `take`.
Place* place_of(std::uintptr_t pc, bool take) noexcept {
    const std::size_t hash = hash_of(pc);
    for (std::size_t table = 0; table < kTables; ++table) {
        Place* places = tables[table].load(std::memory_order_acquire);
        if (places == nullptr) {
            if (!take) return nullptr;
            auto* fresh = new (std::nothrow) Place[size_of(table)];
            if (fresh == nullptr) return nullptr;
            if (tables[table].compare_exchange_strong(places, fresh, std::memory_order_acq_rel))
                places = fresh;
            else
                delete[] fresh;
        }
        const std::size_t mask = size_of(table) - 1;
        for (std::size_t i = 0; i < kProbes; ++i) {
            Place& place = places[(hash + i) & mask];
            std::uintptr_t there = place.pc.load(std::memory_order_relaxed);
            if (there == pc) return &place;
            if (there != 0) continue;
            if (!take) return nullptr;
            if (place.pc.compare_exchange_strong(there, pc, std::memory_order_relaxed) || there == pc)
                return &place;
        }
    }
    return nullptr;
}

void forget_all() noexcept {
    for (std::size_t table = 0; table < kTables; ++table) {
        Place* places = tables[table].load(std::memory_order_acquire);
        if (places == nullptr) break;
        for (std::size_t i = 0; i < size_of(table); ++i) places[i].rule.store(0, std::memory_order_relaxed);
    }
    frame_rule_counts().forgotten.fetch_add(1, std::memory_order_relaxed);
}

FrameRule look_up(std::uintptr_t pc) noexcept {
    try {
        const auto modules = loaded_modules();
        if (unloads_seen.exchange(modules->unloaded, std::memory_order_relaxed) != modules->unloaded)
            forget_all();
        const LoadedModule* module = modules->find(pc);
        if (module == nullptr || module->frame_header == 0) return {};
        return read_frame_rule(module->frame_header, pc);
    } catch (...) {  // no memory for the list
        return {};
    }
}

}  // namespace

std::uint64_t packed(const FrameRule& rule) noexcept {
    FrameRule kept = rule;
    if (rule.cfa_offset < 0 || rule.cfa_offset >= (1 << 27)) kept = {};
    return (static_cast<std::uint64_t>(kept.kind) + 1) |
           static_cast<std::uint64_t>(kept.return_address) << 3 |
           static_cast<std::uint64_t>(kept.frame_pointer) << 4 |
           static_cast<std::uint64_t>(kept.cfa_offset) << 5 |
           std::uint64_t{static_cast<std::uint16_t>(kept.return_offset)} << 32 |
           std::uint64_t{static_cast<std::uint16_t>(kept.frame_pointer_offset)} << 48;
}

FrameRule unpacked(std::uint64_t bits) noexcept {
    return FrameRule{.kind = static_cast<FrameRule::Kind>((bits & 7) - 1),
                     .return_address = static_cast<FrameRule::Saved>(bits >> 3 & 1),
                     .frame_pointer = static_cast<FrameRule::Saved>(bits >> 4 & 1),
                     .return_offset = static_cast<std::int16_t>(bits >> 32),
                     .frame_pointer_offset = static_cast<std::int16_t>(bits >> 48),
                     .cfa_offset = static_cast<std::int32_t>(bits >> 5 & ((1U << 27) - 1))};
}

FrameRuleCounts& frame_rule_counts() noexcept {
    static FrameRuleCounts counts;
    return counts;
}

FrameRule frame_rule_at(std::uintptr_t pc) noexcept {
    if (const Place* place = place_of(pc, false)) {
        if (const std::uint64_t bits = place->rule.load(std::memory_order_relaxed)) return unpacked(bits);
    }
    const FrameRule rule = look_up(pc);
    FrameRuleCounts& counts = frame_rule_counts();
    counts.looked_up.fetch_add(1, std::memory_order_relaxed);
    if (rule.kind == FrameRule::Kind::unknown) counts.without_table.fetch_add(1, std::memory_order_relaxed);
    if (Place* place = place_of(pc, true)) place->rule.store(packed(rule), std::memory_order_relaxed);
    return rule;
}

}  // namespace marey
