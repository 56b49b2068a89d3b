// native_stack.cpp: the return addresses of the calling thread's native frames.
#include "native/native_stack.h"

#include <pthread.h>

#include <cstdio>
#include <memory>

#include "native/frame_rule_cache.h"

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

}  // namespace

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
    const FrameRuleCounts& counts = frame_rule_counts();
    const std::uint64_t looked_up = counts.looked_up.load(std::memory_order_relaxed);
    const std::uint64_t requests = known_addresses.load(std::memory_order_relaxed);
    return {requests > looked_up ? requests - looked_up : 0, looked_up,
            counts.without_table.load(std::memory_order_relaxed),
            counts.forgotten.load(std::memory_order_relaxed)};
}

}  // namespace marey
