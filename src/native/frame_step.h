// frame_step.h: from a native frame to its caller, on the stack of any thread.
#pragma once

#include <cstdint>

#include "native/frame_rule.h"
#include "native/stack_bounds.h"

namespace marey {

/// A frame: `pc` is within the instruction that runs, so for callers the return address less 1.
struct NativeFrame {
    std::uintptr_t pc;
    std::uintptr_t sp;
    std::uintptr_t fp;

    bool operator==(const NativeFrame&) const = default;
};

/// A frame, and the places of the words from which its caller was found; 0: none.
struct NativeStep {
    NativeFrame frame;
    std::uintptr_t return_at = 0;
    std::uintptr_t fp_at = 0;
};

/// The address without AArch64's signature bits.
inline std::uintptr_t without_signature(std::uintptr_t address) noexcept {
#if defined(__aarch64__)
    register std::uintptr_t in_link asm("x30") = address;
    asm("hint #7" : "+r"(in_link));  // xpaclri, which older processors treat as a nop
    return in_link;
#else
    return address;
#endif
}

// Only stacks are read; sanitizers must not check these reads.
__attribute__((no_sanitize("address", "thread"))) inline std::uintptr_t word_at(std::uintptr_t at) noexcept {
    return *reinterpret_cast<const volatile std::uintptr_t*>(at);  // NOLINT(performance-no-int-to-ptr)
}

inline bool read_word(const StackBounds& stack, const NativeFrame& at, std::uintptr_t place,
                      std::uintptr_t& word, std::uintptr_t shift) noexcept {
    if (place < at.sp || place > stack.high - sizeof word || place % sizeof word != 0) return false;
    word = word_at(place + shift);
    return true;
}

/// The caller of step.frame, into `caller`. False: there is none, or it cannot be found. Words are read only
/// between the frame's stack pointer and the end of the stack; in a copy of the stack, the word at `place` is
/// at `place + shift`.
inline bool find_caller(const StackBounds& stack, const FrameRule& rule, std::uintptr_t link,
                        NativeStep& step, NativeFrame& caller, std::uintptr_t shift = 0) noexcept {
    const NativeFrame& at = step.frame;
    std::uintptr_t address = link;
    std::uintptr_t cfa = 0;
    std::intptr_t return_offset = rule.return_offset;
    std::intptr_t pointer_offset = rule.frame_pointer_offset;
    bool has_return = rule.return_address == FrameRule::Saved::in_memory;
    bool has_pointer = rule.frame_pointer == FrameRule::Saved::in_memory;
    caller.fp = at.fp;
    switch (rule.kind) {
        case FrameRule::Kind::end:
        case FrameRule::Kind::signal:
            return false;
        case FrameRule::Kind::unknown:
            cfa = at.fp + 2 * sizeof cfa;
            has_return = has_pointer = true;
            return_offset = -static_cast<std::intptr_t>(sizeof cfa);
            pointer_offset = 2 * return_offset;
            break;
        case FrameRule::Kind::stack_pointer:
        case FrameRule::Kind::frame_pointer:
            cfa = (rule.kind == FrameRule::Kind::stack_pointer ? at.sp : at.fp) +
                  static_cast<std::uintptr_t>(rule.cfa_offset);
            break;
    }
    if (cfa < at.sp || cfa > stack.high || (has_return ? cfa == at.sp : link == 0)) return false;
    if (has_return) {
        step.return_at = cfa + static_cast<std::uintptr_t>(return_offset);
        if (!read_word(stack, at, step.return_at, address, shift)) return false;
    }
    if (has_pointer) {
        step.fp_at = cfa + static_cast<std::uintptr_t>(pointer_offset);
        if (!read_word(stack, at, step.fp_at, caller.fp, shift)) return false;
    }
    caller.pc = without_signature(address) - 1;
    caller.sp = cfa;
    return caller.pc >= 4096;
}

}  // namespace marey
