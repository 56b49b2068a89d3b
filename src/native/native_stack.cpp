// native_stack.cpp: the return addresses of the calling thread's native frames.
#include "native/native_stack.h"

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <new>

#include "native/loaded_modules.h"

namespace marey {
namespace {

struct Bounds {
    std::uintptr_t low = 0;
    std::uintptr_t high = 0;  ///< one past the last byte

    bool holds(std::uintptr_t at) const noexcept { return at >= low && at < high; }
};

// The stack that this thread was last on. Initial-exec: a plain load, as for all of the library's few.
constinit thread_local Bounds stack_bounds __attribute__((tls_model("initial-exec")));
std::atomic<std::uint64_t> known_addresses{0};
struct {
    std::atomic<std::uint64_t> looked_up{0};
    std::atomic<std::uint64_t> without_table{0};
    std::atomic<std::uint64_t> forgotten{0};
} rule_counts;

Bounds bounds_of_thread() noexcept {
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
    void* low = nullptr;
    std::size_t size = 0;
    Bounds bounds;
    if (pthread_attr_getstack(&attributes, &low, &size) == 0) {
        bounds.low = reinterpret_cast<std::uintptr_t>(low);
        bounds.high = bounds.low + size;
    }
    pthread_attr_destroy(&attributes);
    return bounds;
}

/// The mapping that contains `at`: for stacks created by the program itself.
Bounds bounds_of_mapping(std::uintptr_t at) noexcept {
    const std::unique_ptr<FILE, int (*)(FILE*)> maps(std::fopen("/proc/self/maps", "re"), &std::fclose);
    if (!maps) return {};
    char line[512];
    while (std::fgets(line, sizeof line, maps.get()) != nullptr) {
        unsigned long low = 0;
        unsigned long high = 0;
        if (std::sscanf(line, "%lx-%lx", &low, &high) == 2 && at >= low && at < high)  // NOLINT(cert-err34-c)
            return {low, high};
    }
    return {};
}

const Bounds& bounds_around(std::uintptr_t stack_pointer) noexcept {
    if (!stack_bounds.holds(stack_pointer)) {
        stack_bounds = bounds_of_thread();
        if (!stack_bounds.holds(stack_pointer)) stack_bounds = bounds_of_mapping(stack_pointer);
    }
    return stack_bounds;
}

/// The address without AArch64's signature bits.
std::uintptr_t without_signature(std::uintptr_t address) noexcept {
#if defined(__aarch64__)
    register std::uintptr_t in_link asm("x30") = address;
    asm("hint #7" : "+r"(in_link));  // xpaclri, which older processors treat as a nop
    return in_link;
#else
    return address;
#endif
}

struct Registers {
    std::uintptr_t pc;
    std::uintptr_t sp;
    std::uintptr_t fp;
};

// Only stacks are read; sanitizers must not check these reads.
__attribute__((no_sanitize("address", "thread"))) bool read_word(const Bounds& stack, std::uintptr_t lowest,
                                                                 std::uintptr_t at,
                                                                 std::uintptr_t& out) noexcept {
    if (at < lowest || at > stack.high - sizeof out || at % sizeof out != 0) return false;
    out = *reinterpret_cast<const volatile std::uintptr_t*>(at);  // NOLINT(performance-no-int-to-ptr)
    return true;
}

/// Moves to the caller. False: there is none, or it cannot be found.
bool step(const Bounds& stack, const FrameRule& rule, Registers& at) noexcept {
    std::uintptr_t caller = 0;
    std::uintptr_t frame_pointer = at.fp;
    std::uintptr_t cfa = 0;
    switch (rule.kind) {
        case FrameRule::Kind::end:
            return false;
        case FrameRule::Kind::unknown:
            cfa = at.fp + 2 * sizeof caller;
            if (!read_word(stack, at.sp, at.fp, frame_pointer) ||
                !read_word(stack, at.sp, at.fp + sizeof caller, caller))
                return false;
            break;
        case FrameRule::Kind::stack_pointer:
        case FrameRule::Kind::frame_pointer:
            cfa = (rule.kind == FrameRule::Kind::stack_pointer ? at.sp : at.fp) +
                  static_cast<std::uintptr_t>(rule.cfa_offset);
            if (rule.return_address != FrameRule::Saved::in_memory ||
                !read_word(stack, at.sp, cfa + static_cast<std::uintptr_t>(std::intptr_t{rule.return_offset}),
                           caller))
                return false;
            if (rule.frame_pointer == FrameRule::Saved::in_memory &&
                !read_word(stack, at.sp,
                           cfa + static_cast<std::uintptr_t>(std::intptr_t{rule.frame_pointer_offset}),
                           frame_pointer))
                return false;
            break;
    }
    if (cfa <= at.sp || cfa > stack.high) return false;
    at = {without_signature(caller), cfa, frame_pointer};
    return at.pc > 4096;
}

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
    rule_counts.forgotten.fetch_add(1, std::memory_order_relaxed);
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

FrameRule frame_rule_at(std::uintptr_t pc) noexcept {
    if (const Place* place = place_of(pc, false)) {
        if (const std::uint64_t bits = place->rule.load(std::memory_order_relaxed)) return unpacked(bits);
    }
    const FrameRule rule = look_up(pc);
    rule_counts.looked_up.fetch_add(1, std::memory_order_relaxed);
    if (rule.kind == FrameRule::Kind::unknown)
        rule_counts.without_table.fetch_add(1, std::memory_order_relaxed);
    if (Place* place = place_of(pc, true)) place->rule.store(packed(rule), std::memory_order_relaxed);
    return rule;
}

__attribute__((noinline)) std::size_t capture_native_stack(std::uintptr_t* out, std::size_t room,
                                                           std::size_t skip,
                                                           std::uintptr_t* stack_pointers) noexcept {
    Registers at{};
#if defined(__aarch64__)
    asm volatile("adr %0, .\n\tmov %1, sp\n\tmov %2, x29" : "=r"(at.pc), "=r"(at.sp), "=r"(at.fp));
#elif defined(__x86_64__)
    asm volatile("leaq 0(%%rip), %0\n\tmovq %%rsp, %1\n\tmovq %%rbp, %2"
                 : "=r"(at.pc), "=r"(at.sp), "=r"(at.fp));
#else
    return 0;
#endif
    const Bounds& stack = bounds_around(at.sp);
    if (!stack.holds(at.sp)) return 0;
    std::size_t count = 0;
    std::uint64_t requests = 1;
    FrameRule rule = frame_rule_at(at.pc);
    while (count < room && step(stack, rule, at)) {
        if (skip > 0) {
            --skip;
        } else {
            if (stack_pointers != nullptr) stack_pointers[count] = at.sp;
            out[count++] = at.pc;
        }
        rule = frame_rule_at(at.pc - 1);  // the call, not what follows it
        ++requests;
    }
    known_addresses.fetch_add(requests, std::memory_order_relaxed);
    return count;
}

NativeStackCounts native_stack_counts() noexcept {
    const std::uint64_t looked_up = rule_counts.looked_up.load(std::memory_order_relaxed);
    const std::uint64_t requests = known_addresses.load(std::memory_order_relaxed);
    return {requests > looked_up ? requests - looked_up : 0, looked_up,
            rule_counts.without_table.load(std::memory_order_relaxed),
            rule_counts.forgotten.load(std::memory_order_relaxed)};
}

}  // namespace marey
