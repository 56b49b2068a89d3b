// native_stack.cpp: the return addresses of the calling thread's native frames.
#include "native/native_stack.h"

#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

#include "native/frame_step.h"
#include "native/rule_table.h"
#include "native/stack_bounds.h"

namespace marey {
namespace {

// The outer frames of deeper stacks are walked each time.
constexpr std::size_t kSteps = 1024;

/// The steps of a thread's last walk. A step is a fact: from that frame, with those words, the next one
/// follows. So a step is right as long as the words are, wherever it comes from.
struct KeptStack {
    std::array<NativeStep, kSteps> fresh;  ///< those of the walk that goes on, innermost first
    std::array<NativeStep, kSteps> steps;  ///< those of the last one, from `first` to the end
    std::size_t first = kSteps;
    StackBounds bounds;                   ///< of the stack that they are on
    std::uint32_t generation = 0;         ///< of the rules that led from one to the next
    std::atomic<std::uint64_t> known{0};  ///< frames, in all walks

    void keep(std::size_t fresh_count, std::size_t matched) noexcept;
};

// By the address of the thread. A thread inherits that of one that has ended, with the memory of its stack.
// More threads than places do without.
constexpr std::size_t kStacks = 2048;
constexpr std::size_t kProbes = 16;
struct KeptPlace {
    std::atomic<pthread_t> owner{0};
    std::atomic<KeptStack*> stack{nullptr};
};
constinit std::array<KeptPlace, kStacks> kept_places{};

// The stack that this thread was last on, where on it a capture is going on, and what the thread keeps.
// Initial-exec: a plain load, as for all of the library's few.
struct ThreadStack {
    StackBounds bounds;
    std::uintptr_t capturing_at = 0;
    KeptStack* kept = nullptr;
};
constinit thread_local ThreadStack thread_stack __attribute__((tls_model("initial-exec")));

void signal_fence() noexcept {
    std::atomic_signal_fence(std::memory_order_seq_cst);
}

/// The calling thread's, or null.
KeptStack* find_kept_stack() noexcept {
    const pthread_t self = pthread_self();
    const std::uint64_t hash = static_cast<std::uint64_t>(self) * 0x9e3779b97f4a7c15ULL >> 32;
    for (std::size_t i = 0; i < kProbes; ++i) {
        KeptPlace& place = kept_places[(hash + i) % kStacks];
        pthread_t owner = 0;
        if (!place.owner.compare_exchange_strong(owner, self, std::memory_order_acquire) && owner != self)
            continue;
        KeptStack* kept = place.stack.load(std::memory_order_relaxed);
        if (kept != nullptr) return kept;
        void* memory = mmap(nullptr, sizeof(KeptStack), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) return nullptr;
        kept = new (memory) KeptStack;
        place.stack.store(kept, std::memory_order_release);
        return kept;
    }
    return nullptr;
}

void KeptStack::keep(std::size_t fresh_count, std::size_t matched) noexcept {
    const std::size_t count = std::min(fresh_count, matched);  // the outer ones
    first = matched - count;
    for (std::size_t i = 0; i < count; ++i) steps[first + i] = fresh[fresh_count - count + i];
}

/// One walk, from a frame outwards.
class Walk {
  public:
    Walk(std::uintptr_t* out, std::size_t room, std::size_t skip, std::uintptr_t* stack_pointers,
         bool may_lock) noexcept
        : out_(out), stack_pointers_(stack_pointers), room_(room), skip_(skip), may_lock_(may_lock) {}

    void add(const NativeFrame& frame) noexcept {
        if (skip_ > 0) {
            --skip_;
            return;
        }
        if (stack_pointers_ != nullptr) stack_pointers_[count_] = frame.sp;
        out_[count_++] = frame.pc + 1;
    }
    void run(NativeFrame at, std::uintptr_t link, StackBounds bounds, KeptStack* kept) noexcept;
    /// With every rule read again, and nothing kept.
    void run_plainly(NativeFrame at, StackBounds bounds) noexcept;
    /// In a copy of the stack: the word at `place` is at `place + shift`.
    void run_in_copy(NativeFrame at, std::uintptr_t link, const StackBounds& bounds,
                     std::uintptr_t shift) noexcept;

    std::size_t count() const noexcept { return count_; }

  private:
    /// True: stopped at the frame of a signal handler, which is in `at`.
    bool run_to_signal(NativeFrame& at, std::uintptr_t link, const StackBounds& bounds,
                       KeptStack* kept) noexcept;
    bool has_room() const noexcept { return count_ < room_; }
    std::size_t follow(const KeptStack& kept, std::size_t from) noexcept;

    std::uintptr_t* out_;
    std::uintptr_t* stack_pointers_;
    std::size_t room_;
    std::size_t skip_;
    bool may_lock_;
    std::size_t count_ = 0;
};

/// Makes `at`, to which a signal handler returns, the frame that the handler interrupted, from what the
/// kernel left on the stack. That frame may be on another stack. False: it cannot be found.
bool find_interrupted(NativeFrame& at, std::uintptr_t& link, StackBounds& stack) noexcept {
    NativeFrame found{};
    const auto read = [&](std::size_t offset, std::uintptr_t& word) {
        return read_word(stack, at, at.sp + offset, word, 0);
    };
#if defined(__aarch64__)
    constexpr std::size_t kContext = 128;  // after the siginfo_t
    if (!read(kContext + offsetof(ucontext_t, uc_mcontext.pc), found.pc) ||
        !read(kContext + offsetof(ucontext_t, uc_mcontext.sp), found.sp) ||
        !read(kContext + offsetof(ucontext_t, uc_mcontext.regs[29]), found.fp) ||
        !read(kContext + offsetof(ucontext_t, uc_mcontext.regs[30]), link))
        return false;
#elif defined(__x86_64__)
    if (!read(offsetof(ucontext_t, uc_mcontext.gregs[REG_RIP]), found.pc) ||
        !read(offsetof(ucontext_t, uc_mcontext.gregs[REG_RSP]), found.sp) ||
        !read(offsetof(ucontext_t, uc_mcontext.gregs[REG_RBP]), found.fp))
        return false;
    link = 0;
#else
    return false;
#endif
    const bool is_other = !stack.holds(found.sp);
    if (is_other) stack = stack_bounds_at(found.sp);
    if (is_other ? !stack.holds(found.sp) : found.sp <= at.sp) return false;
    at = found;
    return true;
}

/// Adds the callers of a kept frame as far as their words are unchanged. Returns the last one.
__attribute__((no_sanitize("address", "thread"))) std::size_t Walk::follow(const KeptStack& kept,
                                                                           std::size_t from) noexcept {
    const std::size_t room = room_ - count_ + skip_;
    const std::size_t end = room < kSteps - 1 - from ? from + room : kSteps - 1;
    const auto is_next = [&](std::size_t i) {
        const NativeStep& step = kept.steps[i];
        const NativeFrame& next = kept.steps[i + 1].frame;
        return without_signature(word_at(step.return_at)) == next.pc + 1 &&
               (step.fp_at == 0 || word_at(step.fp_at) == next.fp);
    };
    std::size_t i = from;
    for (; skip_ > 0 && i < end && is_next(i); ++i) --skip_;
    if (skip_ > 0) return i;
    const std::size_t first = i;
    std::uintptr_t* const out = out_ + count_;
    for (; i < end && is_next(i); ++i) out[i - first] = kept.steps[i + 1].frame.pc + 1;
    if (stack_pointers_ != nullptr) {
        for (std::size_t k = first; k < i; ++k)
            stack_pointers_[count_ + k - first] = kept.steps[k + 1].frame.sp;
    }
    count_ += i - first;
    return i;
}

void Walk::run(NativeFrame at, std::uintptr_t link, StackBounds bounds, KeptStack* kept) noexcept {
    for (; run_to_signal(at, link, bounds, kept) && find_interrupted(at, link, bounds); kept = nullptr)
        add(at);
}

bool Walk::run_to_signal(NativeFrame& at, std::uintptr_t link, const StackBounds& bounds,
                         KeptStack* kept) noexcept {
    bool is_signal = false;
    std::size_t fresh = 0;
    std::size_t next = kept != nullptr ? kept->first : kSteps;  // the next kept frame that may be met
    std::size_t matched = kSteps;                               // what the fresh steps lead to
    const auto note = [&](const NativeStep& step) {
        if (kept != nullptr && fresh < kSteps) kept->fresh[fresh++] = step;
    };
    while (has_room()) {
        while (next < kSteps && kept->steps[next].frame.sp < at.sp) ++next;
        bool is_last = false;
        if (next < kSteps && kept->steps[next].frame == at) {
            const std::size_t last = follow(*kept, next);
            at = kept->steps[last].frame;
            is_last = last + 1 == kSteps;
            matched = next;
            next = last + 1;
            if (!has_room()) break;
        }
        NativeStep step{at};
        NativeFrame caller{};
        const FrameRule rule = frame_rule_at(at.pc, may_lock_);
        is_signal = rule.kind == FrameRule::Kind::signal;
        const bool has_caller = find_caller(bounds, rule, link, step, caller);
        if (is_last && !has_caller) break;
        if (matched != kSteps) {  // kept steps in the middle of new ones
            for (; matched + 1 < next; ++matched) note(kept->steps[matched]);
            matched = kSteps;
        }
        if (has_caller && step.return_at == 0)
            fresh = 0;  // read from a register: no fact
        else
            note(step);
        if (!has_caller) break;
        link = 0;
        at = caller;
        add(at);
        if (!has_room()) note({at});
    }
    if (kept != nullptr) kept->keep(fresh, fresh < kSteps ? matched : kSteps);
    return is_signal;
}

void Walk::run_plainly(NativeFrame at, StackBounds bounds) noexcept {
    for (std::uintptr_t link = 0; has_room(); add(at)) {
        const FrameRule rule = look_up_frame_rule(at.pc);
        NativeStep step{at};
        const bool has_caller = rule.kind == FrameRule::Kind::signal
                                    ? find_interrupted(at, link, bounds)
                                    : find_caller(bounds, rule, std::exchange(link, 0), step, at);
        if (!has_caller) return;
    }
}

/// Whether a capture has not ended because something jumped out of a signal handler that interrupted it. The
/// handler may have left the bounds of its own stack.
bool has_left_capture(const ThreadStack& thread, std::uintptr_t here) noexcept {
    const auto holds_both = [&](const StackBounds& stack) {
        return stack.holds(here) && stack.holds(thread.capturing_at);
    };
    return thread.capturing_at < here && (holds_both(thread.bounds) || holds_both(stack_bounds_at(here)));
}

void Walk::run_in_copy(NativeFrame at, std::uintptr_t link, const StackBounds& bounds,
                       std::uintptr_t shift) noexcept {
    for (NativeStep step{at}; has_room(); step = {at}) {
        NativeFrame caller{};
        if (!find_caller(bounds, frame_rule_at(at.pc, may_lock_), link, step, caller, shift)) return;
        link = 0;
        at = caller;
        add(at);
    }
}

/// Finds the stack of `from` and runs `walk` there.
void run(Walk& walk, const NativeFrame& from, std::uintptr_t link) noexcept {
    ThreadStack& thread = thread_stack;
    const auto here = reinterpret_cast<std::uintptr_t>(&walk);
    // In a signal handler that interrupted a capture, unless an earlier one has jumped out of it.
    if (thread.capturing_at != 0 && !has_left_capture(thread, here)) {
        const StackBounds bounds = thread.bounds.holds(from.sp) ? thread.bounds : stack_bounds_at(from.sp);
        if (bounds.holds(from.sp)) walk.run(from, link, bounds, nullptr);
        return;
    }
    thread.capturing_at = here;
    signal_fence();
    if (thread.kept == nullptr) thread.kept = find_kept_stack();
    KeptStack* const kept = thread.kept;
    if (!thread.bounds.holds(from.sp)) {
        // A thread of the same address that has ended had this stack; but others may have been replaced.
        const bool is_own = kept != nullptr && kept->bounds.holds(from.sp) &&
                            kept->bounds.high == static_cast<std::uintptr_t>(pthread_self());
        const StackBounds found = is_own ? kept->bounds : stack_bounds_at(from.sp);
        thread.bounds.high = 0;  // a signal handler finds them whole or empty
        signal_fence();
        thread.bounds.low = found.low;
        signal_fence();
        thread.bounds.high = found.high;
    }
    if (kept != nullptr) {
        const std::uint32_t generation = frame_rule_generation();
        if (kept->bounds != thread.bounds || kept->generation != generation) {
            kept->first = kSteps;
            kept->bounds = thread.bounds;
            kept->generation = generation;
        }
    }
    if (thread.bounds.holds(from.sp)) walk.run(from, link, thread.bounds, kept);
    if (kept != nullptr)
        kept->known.store(kept->known.load(std::memory_order_relaxed) + walk.count() + 1,
                          std::memory_order_relaxed);
    signal_fence();
    thread.capturing_at = 0;
}

/// The frame of the function that contains it.
__attribute__((always_inline)) inline NativeFrame this_frame() noexcept {
    NativeFrame at{};
#if defined(__aarch64__)
    asm volatile("adr %0, .\n\tmov %1, sp\n\tmov %2, x29" : "=r"(at.pc), "=r"(at.sp), "=r"(at.fp));
#elif defined(__x86_64__)
    asm volatile("leaq 0(%%rip), %0\n\tmovq %%rsp, %1\n\tmovq %%rbp, %2"
                 : "=r"(at.pc), "=r"(at.sp), "=r"(at.fp));
#endif
    return at;
}

}  // namespace

__attribute__((noinline)) std::size_t capture_native_stack(std::uintptr_t* out, std::size_t room,
                                                           std::size_t skip,
                                                           std::uintptr_t* stack_pointers) noexcept {
    Walk walk(out, room, skip, stack_pointers, true);
    run(walk, this_frame(), 0);
    return walk.count();
}

std::size_t capture_native_stack_from(const FrameRegisters& from, std::uintptr_t* out, std::size_t room,
                                      std::uintptr_t* stack_pointers) noexcept {
    Walk walk(out, room, 0, stack_pointers, false);
    const NativeFrame at{from.pc, from.sp, from.fp};
    if (room != 0) walk.add(at);
    run(walk, at, from.link);
    return walk.count();
}

std::size_t walk_copied_stack(const FrameRegisters& from, const std::byte* copy, std::size_t bytes,
                              std::uintptr_t* out, std::size_t room,
                              std::uintptr_t* stack_pointers) noexcept {
    Walk walk(out, room, 0, stack_pointers, true);
    const NativeFrame at{from.pc, from.sp, from.fp};
    if (room != 0) walk.add(at);
    walk.run_in_copy(at, from.link, {from.sp, from.sp + bytes},
                     reinterpret_cast<std::uintptr_t>(copy) - from.sp);
    return walk.count();
}

__attribute__((noinline)) std::size_t walk_whole_native_stack(std::uintptr_t* out,
                                                              std::size_t room) noexcept {
    Walk walk(out, room, 0, nullptr, true);
    const NativeFrame at = this_frame();
    walk.run_plainly(at, thread_stack.bounds.holds(at.sp) ? thread_stack.bounds : stack_bounds_at(at.sp));
    return walk.count();
}

NativeStackCounts native_stack_counts() noexcept {
    const RuleCounts rules = rule_counts();
    std::uint64_t walked = 0;
    for (const KeptPlace& place : kept_places) {
        const KeptStack* const kept = place.stack.load(std::memory_order_acquire);
        if (kept != nullptr) walked += kept->known.load(std::memory_order_relaxed);
    }
    return {walked > rules.looked_up ? walked - rules.looked_up : 0, rules.looked_up, rules.without_table,
            rules.forgotten};
}

}  // namespace marey
