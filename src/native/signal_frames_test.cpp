// signal_frames_test.cpp: stacks go on below signal handlers, wherever those interrupted the program.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/auxv.h>
#include <time.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <vector>

#include "native/frame_rule.h"
#include "native/loaded_modules.h"
#include "native/native_stack.h"

namespace marey {
namespace {

using Addresses = std::vector<std::uintptr_t>;
constexpr std::size_t kFrames = 256;

struct Stack {
    std::array<std::uintptr_t, kFrames> frames{};
    std::size_t count = 0;

    bool ends_with(const std::uintptr_t* outer, std::size_t size) const {
        return count >= size &&
               std::equal(outer, outer + size, frames.begin() + static_cast<std::ptrdiff_t>(count - size));
    }
};

__attribute__((noinline)) Stack captured() {
    Stack stack;
    stack.count = capture_native_stack(stack.frames.data(), kFrames);
    return stack;
}

FrameRegisters registers_of(const void* context) {
    const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__aarch64__)
    return {machine.pc, machine.sp, machine.regs[29], machine.regs[30]};
#else
    return {static_cast<std::uintptr_t>(machine.gregs[REG_RIP]),
            static_cast<std::uintptr_t>(machine.gregs[REG_RSP]),
            static_cast<std::uintptr_t>(machine.gregs[REG_RBP])};
#endif
}

/// The stacks that handlers saw.
struct Seen {
    std::size_t signals = 0;
    std::size_t without_interrupted = 0;  ///< the handler's stack does not end with the one it interrupted
    std::size_t without_caller = 0;       ///< the interrupted stack does not end with `outer`
    std::size_t in_kernel_module = 0;
    std::uintptr_t first_wrong = 0;
    Stack outer;  ///< of the function in which signals arrive, itself first
};
Seen seen;

void look(const void* context) {
    const FrameRegisters from = registers_of(context);
    Stack interrupted;
    interrupted.count = capture_native_stack_from(from, interrupted.frames.data(), kFrames);
    const Stack own = captured();
    ++seen.signals;
    if (!own.ends_with(interrupted.frames.data(), interrupted.count)) ++seen.without_interrupted;
    if (!interrupted.ends_with(seen.outer.frames.data() + 2, seen.outer.count - 2)) {
        if (seen.without_caller++ == 0) seen.first_wrong = from.pc;
    }
    const std::uintptr_t kernel = getauxval(AT_SYSINFO_EHDR);
    if (kernel != 0 && from.pc - kernel < 16384) ++seen.in_kernel_module;
}

void look_around(int /*number*/, siginfo_t* /*info*/, void* context) {
    look(context);
}

class SignalFrames : public ::testing::TestWithParam<bool> {
  protected:
    void handle(int number, void (*handler)(int, siginfo_t*, void*)) {
        struct sigaction action {};
        action.sa_sigaction = handler;
        action.sa_flags = SA_SIGINFO | SA_NODEFER | (GetParam() ? SA_ONSTACK : 0);
        sigaction(number, &action, nullptr);
        if (GetParam()) {
            const stack_t stack{memory_.data(), 0, memory_.size()};
            sigaltstack(&stack, nullptr);
        }
        seen = {};
    }
    void TearDown() override {
        const stack_t none{nullptr, SS_DISABLE, 0};
        sigaltstack(&none, nullptr);
        signal(SIGUSR1, SIG_DFL);
        signal(SIGTRAP, SIG_DFL);
    }
    std::vector<char> memory_ = std::vector<char>(65536);
};

__attribute__((noinline)) void raise_here() {
    int (*volatile raise_it)(int) = raise;  // which the compiler believes to throw nothing
    seen.outer = captured();
    raise_it(SIGUSR1);
    asm volatile("" ::: "memory");
}

TEST_P(SignalFrames, LeadToTheStackThatWasInterrupted) {
    handle(SIGUSR1, look_around);
    for (int i = 0; i < 3; ++i) raise_here();
    EXPECT_EQ(seen.signals, 3U);
    EXPECT_EQ(seen.without_interrupted, 0U);
    EXPECT_EQ(seen.without_caller, 0U);
}

int depth;

TEST_P(SignalFrames, LieWithinEachOther) {
    handle(SIGUSR1, [](int, siginfo_t*, void* context) {
        if (++depth < 4) raise(SIGUSR1);
        look(context);
    });
    depth = 0;
    raise_here();
    EXPECT_EQ(seen.signals, 4U);
    EXPECT_EQ(seen.without_interrupted, 0U);
    EXPECT_EQ(seen.without_caller, 0U);
}

TEST_P(SignalFrames, MayBeThrownThrough) {
    handle(SIGUSR1, [](int, siginfo_t*, void* context) {
        look(context);
        throw std::runtime_error("thrown");
    });
    const Stack before = captured();
    for (int i = 0; i < 3; ++i) {
        EXPECT_THROW(raise_here(), std::runtime_error);
        const Stack after = captured();
        EXPECT_TRUE(after.ends_with(before.frames.data() + 2, before.count - 2));
    }
    EXPECT_EQ(seen.without_interrupted, 0U);
}

#if defined(__x86_64__)

/// Has the processor signal after each instruction, or no more.
__attribute__((always_inline)) inline void step_by_step(bool on) {
    asm volatile("pushfq\n\torq %0, (%%rsp)\n\tandq %1, (%%rsp)\n\tpopfq" ::"r"(on ? 0x100L : 0L),
                 "r"(on ? -1L : ~0x100L)
                 : "memory", "cc");
}

__attribute__((noinline)) void step_through_the_clock() {
    seen.outer = captured();
    timespec now;
    // asm may push only below the red zone, which this function does not use: it calls others.
    step_by_step(true);
    clock_gettime(CLOCK_MONOTONIC, &now);
    step_by_step(false);
}

// Every instruction of an entry of the PLT, the loader where it binds, libc, the vDSO: prologues and
// epilogues too.
TEST_P(SignalFrames, AreFoundAtEveryInstruction) {
    handle(SIGTRAP, look_around);
    step_through_the_clock();
    if (seen.signals == 0) GTEST_SKIP() << "no signal after each instruction here";
    const auto modules = loaded_modules();
    const LoadedModule* const wrong = modules->find(seen.first_wrong);
    EXPECT_GT(seen.signals, 20U);
    EXPECT_EQ(seen.without_interrupted, 0U);
    EXPECT_EQ(seen.without_caller, 0U)
        << "of " << seen.signals << ", first at " << (wrong != nullptr ? wrong->path : "?") << "+0x"
        << std::hex << seen.first_wrong - (wrong != nullptr ? wrong->bias : 0);
    if (modules->find(getauxval(AT_SYSINFO_EHDR)) != nullptr) {
        EXPECT_GT(seen.in_kernel_module, 5U);
    }
}

TEST(FrameRules, AreThoseOfLinkersForThePlt) {
    // sp + 8 + ((pc & 15) >= 11 ? 8 : 0), as ld writes it.
    std::vector<unsigned char> own{0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};
    const std::array<unsigned char, 5> common{0x0c, 7, 8, 0x90, 1};
    const auto offset_at = [&](std::uintptr_t pc) {
        const FrameTables tables{
            common.data(), common.data() + 5, own.data(), own.data() + own.size(), 1, -8, 16, 0x1b, 0x1000};
        const FrameRule rule = run_frame_tables(tables, pc);
        return rule.kind == FrameRule::Kind::stack_pointer ? rule.cfa_offset : -1;
    };
    EXPECT_EQ(offset_at(0x102a), 8);
    EXPECT_EQ(offset_at(0x102b), 16);
    EXPECT_EQ(offset_at(0x1030), 8);
    own[8] = 0x35;  // with branch tracking
    EXPECT_EQ(offset_at(0x1025), 16);
    own[9] = 0x2b;  // another expression
    EXPECT_EQ(offset_at(0x102b), -1);
}

#endif

INSTANTIATE_TEST_SUITE_P(Native, SignalFrames, ::testing::Bool(), [](const auto& how) {
    return std::string(how.param ? "OnAnAlternateStack" : "OnTheStackOfTheThread");
});

}  // namespace
}  // namespace marey
