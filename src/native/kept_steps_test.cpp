// kept_steps_test.cpp: what a thread keeps of its last walk never changes the frames of the next one.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "native/native_stack.h"
#include "native/stack_bounds.h"

namespace marey {
namespace {

using Addresses = std::vector<std::uintptr_t>;
constexpr std::size_t kRoom = 8192;

struct Compared {
    std::size_t captures = 0;
    std::size_t different = 0;
    std::size_t deepest = 0;
    Addresses kept, whole;  ///< of the first difference
};
thread_local Compared compared;

void use(void* room) {
    asm volatile("" ::"r"(room) : "memory");
}

/// Captures twice, with and without what is kept. The innermost frame is this function, at two addresses.
__attribute__((noinline)) void compare(std::size_t room = kRoom) {
    static thread_local Addresses kept(kRoom);
    static thread_local Addresses whole(kRoom);
    const std::size_t count = capture_native_stack(kept.data(), room);
    const std::size_t whole_count = walk_whole_native_stack(whole.data(), room);
    ++compared.captures;
    compared.deepest = std::max(compared.deepest, count);
    if (count == whole_count &&
        std::equal(kept.begin() + 1, kept.begin() + static_cast<std::ptrdiff_t>(count), whole.begin() + 1))
        return;
    if (compared.different++ == 0) {
        compared.kept.assign(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(count));
        compared.whole.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(whole_count));
    }
}

void expect_equal_captures(std::size_t at_least) {
    EXPECT_EQ(compared.different, 0U);
    EXPECT_EQ(compared.kept, compared.whole);
    EXPECT_GE(compared.captures, at_least);
    compared = {};
}

/// A program made of random numbers: functions of different frames that call each other, and capture.
struct RandomProgram {
    std::minstd_rand random;
    int depth = 0;
    int left = 0;
    int max_depth = 60;
    std::jmp_buf* landing = nullptr;

    unsigned next(unsigned below) { return static_cast<unsigned>(random()) % below; }
    void step();
};

struct Thrown {};

template <int kBytes>
__attribute__((noinline)) void plain(RandomProgram& program) {
    std::array<char, kBytes> room;
    use(&room);
    program.step();
    use(&room);
}

/// A frame whose size is known at run time only, so that it is found by its frame pointer.
__attribute__((noinline)) void sized(RandomProgram& program) {
    const std::size_t bytes = 16 + 16 * program.next(40);
    void* const room = __builtin_alloca(bytes);
    use(room);
    program.step();
    use(room);
}

struct Captures {
    ~Captures() { compare(); }
};
__attribute__((noinline)) void catching(RandomProgram& program) {
    const int depth = program.depth;
    try {
        const Captures on_the_way;
        program.step();
        if (program.next(6) == 0) throw Thrown();
    } catch (const Thrown&) {
        program.depth = depth;
        compare();
    }
}

__attribute__((noinline)) void jumping(RandomProgram& program) {
    std::jmp_buf here;
    std::jmp_buf* const before = program.landing;
    const int depth = program.depth;
    if (setjmp(here) == 0) {  // NOLINT
        program.landing = &here;
        program.step();
    } else {
        compare();
    }
    program.landing = before;
    program.depth = depth;
}

__attribute__((noinline)) void RandomProgram::step() {
    ++depth;
    for (unsigned calls = next(4); calls != 0 && left > 0; --calls) {
        --left;
        if (next(3) == 0) compare(next(5) == 0 ? 1 + next(12) : kRoom);
        if (depth > max_depth) break;
        switch (next(6)) {
            case 0:
                plain<24>(*this);
                break;
            case 1:
                plain<400>(*this);
                break;
            case 2:
                sized(*this);
                break;
            case 3:
                catching(*this);
                break;
            default:
                plain<104>(*this);
        }
    }
    compare();
    --depth;
}

TEST(KeptSteps, GiveTheFramesOfAWholeWalkInRandomPrograms) {
    for (unsigned seed = 1; seed <= 40; ++seed) {
        RandomProgram program{std::minstd_rand(seed)};
        program.left = 1000;
        while (program.left > 0) {
            --program.left;
            program.depth = 0;
            try {
                program.step();
            } catch (const Thrown&) {  // past everything
            }
        }
    }
    EXPECT_GT(compared.deepest, 60U);
    expect_equal_captures(20'000);
}

/// Leaves any number of frames at once, without their destructors.
__attribute__((noinline)) void jump_out(RandomProgram& program, int depth) {
    std::array<char, 40> room;
    use(&room);
    compare();
    if (depth == 0 && program.landing != nullptr) std::longjmp(*program.landing, 1);  // NOLINT
    if (depth != 0) jump_out(program, depth - 1);
    use(&room);
}

TEST(KeptSteps, AreRightAfterLongJumps) {
    RandomProgram program{std::minstd_rand(7)};
    static int jumps;  // not in a register, which a jump would restore
    for (jumps = 0; jumps < 500; ++jumps) {
        std::jmp_buf here;
        program.landing = &here;
        if (setjmp(here) == 0) jump_out(program, static_cast<int>(program.next(30)));  // NOLINT
        compare();
        program.left = 20;
        program.landing = nullptr;
        try {
            jumping(program);
        } catch (const Thrown&) {
        }
    }
    expect_equal_captures(5000);
}

__attribute__((noinline)) void throw_through(int depth) {
    const Captures on_the_way;
    if (depth == 0) throw Thrown();
    throw_through(depth - 1);
}

TEST(KeptSteps, AreRightWhileAnExceptionPassesFiftyFrames) {
    for (int i = 0; i < 20; ++i) {
        try {
            throw_through(50);
        } catch (const Thrown&) {
            compare();
        }
    }
    expect_equal_captures(1000);
}

__attribute__((noinline)) void recurse(int depth) {
    std::array<char, 16> room;
    use(&room);
    if (depth % 97 == 0) compare();
    if (depth != 0) recurse(depth - 1);
    if (depth % 89 == 0) compare();
    use(&room);
}

// Without frame pointers nothing but the number of its frames tells one depth from another.
#if defined(__clang__)
#define MAREY_NO_FRAME_POINTER __attribute__((noinline))
#else
#define MAREY_NO_FRAME_POINTER \
    __attribute__((noinline, optimize("O1,omit-frame-pointer,no-optimize-sibling-calls")))
#endif
MAREY_NO_FRAME_POINTER void dive(int depth, int capture_at) {
    if (depth == capture_at || depth == 0) compare();
    if (depth == 0)
        compare();
    else
        dive(depth - 1, capture_at);
    asm volatile("" ::: "memory");
}

// Deeper than what a thread keeps.
TEST(KeptSteps, AreRightInDeepRecursion) {
    for (const int depth : {20, 900, 1015, 1024, 1040, 3000, 100, 2500}) {
        recurse(depth);
        compare();
        dive(depth, std::max(depth - 50, 1));
    }
    EXPECT_GT(compared.deepest, 3000U);
    expect_equal_captures(100);
}

struct Coroutine {
    ucontext_t own{}, back{};
    std::vector<char> memory = std::vector<char>(std::size_t{128} << 10);
    RandomProgram program{std::minstd_rand(1)};
};
Coroutine* running = nullptr;

__attribute__((noinline)) void yield_at(int depth) {
    Coroutine& self = *running;
    compare();
    if (depth != 0) {
        yield_at(depth - 1);
    } else {
        swapcontext(&self.own, &self.back);
    }
    compare();
}

TEST(KeptSteps, AreRightOnStacksThatTheProgramMade) {
    std::array<Coroutine, 4> coroutines;
    for (std::size_t i = 0; i < coroutines.size(); ++i) {
        Coroutine& each = coroutines[i];
        each.program.random.seed(static_cast<unsigned>(i + 5));
        getcontext(&each.own);
        each.own.uc_stack.ss_sp = each.memory.data();
        each.own.uc_stack.ss_size = each.memory.size();
        makecontext(
            &each.own,
            +[] {
                for (;;) yield_at(static_cast<int>(running->program.next(20)));
            },
            0);
    }
    for (int i = 0; i < 60; ++i) {
        running = &coroutines[static_cast<std::size_t>(i * 7) % coroutines.size()];
        swapcontext(&running->back, &running->own);
        compare();
    }
    expect_equal_captures(500);
}

TEST(KeptSteps, AreForgottenWhereAnotherLibraryIsLoaded) {
    std::uintptr_t last = 0;
    int at_the_same_place = 0;
    for (int i = 0; i < 12; ++i) {
        const std::string path =
            std::string(MAREY_TEST_BIN_DIR "/called_back_") + (i % 2 != 0 ? "320" : "64") + ".so";
        void* const library = dlopen(path.c_str(), RTLD_NOW);
        ASSERT_NE(library, nullptr) << dlerror();  // NOLINT(concurrency-mt-unsafe)
        auto* const call_back = reinterpret_cast<void (*)(void (*)())>(dlsym(library, "call_back"));
        for (int k = 0; k < 3; ++k) call_back([] { compare(); });
        if (reinterpret_cast<std::uintptr_t>(call_back) == last) ++at_the_same_place;
        last = reinterpret_cast<std::uintptr_t>(call_back);
        dlclose(library);
    }
    if (at_the_same_place == 0) GTEST_SKIP() << "the loader uses other addresses";
    EXPECT_GE(native_stack_counts().forgotten, 1U);
    expect_equal_captures(36);
}

volatile int seen_signals = 0;
volatile std::size_t shortest = kRoom;
std::jmp_buf* volatile out_of_handler = nullptr;

/// The program that signals interrupt: it captures all the time, or runs a random program.
void work(bool captures, int signals) {
    struct itimerval every {
        {0, 300}, { 0, 300 }
    };
    setitimer(ITIMER_REAL, &every, nullptr);
    RandomProgram program{std::minstd_rand(11)};
    std::array<std::uintptr_t, 64> own{};
    while (seen_signals < signals) {
        if (captures) {
            program.left = 50;
            try {
                program.step();
            } catch (const Thrown&) {
            }
            program.depth = 0;
        } else {
            capture_native_stack(own.data(), own.size());
        }
    }
    every = {};
    setitimer(ITIMER_REAL, &every, nullptr);
}

void on_signal(int /*number*/, siginfo_t* /*info*/, void* context) {
    std::array<std::uintptr_t, 256> out;
    const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__aarch64__)
    const FrameRegisters from{machine.pc, machine.sp, machine.regs[29], machine.regs[30]};
#else
    const FrameRegisters from{static_cast<std::uintptr_t>(machine.gregs[REG_RIP]),
                              static_cast<std::uintptr_t>(machine.gregs[REG_RSP]),
                              static_cast<std::uintptr_t>(machine.gregs[REG_RBP])};
#endif
    const std::size_t count = capture_native_stack_from(from, out.data(), out.size());
    shortest = std::min(std::size_t{shortest}, count);
    capture_native_stack(out.data(), out.size());
    seen_signals = seen_signals + 1;
    if (out_of_handler != nullptr) std::longjmp(*out_of_handler, 1);  // NOLINT
}

class Signals : public ::testing::TestWithParam<bool> {
  protected:
    void SetUp() override {
        seen_signals = 0;
        struct sigaction action {};
        action.sa_sigaction = on_signal;
        action.sa_flags = SA_SIGINFO | SA_RESTART | (GetParam() ? SA_ONSTACK : 0);
        sigaction(SIGALRM, &action, &before_);
        if (GetParam()) {
            const stack_t stack{memory_.data(), 0, memory_.size()};
            sigaltstack(&stack, nullptr);
        }
    }
    void TearDown() override {
        const stack_t none{nullptr, SS_DISABLE, 0};
        sigaltstack(&none, nullptr);
        sigaction(SIGALRM, &before_, nullptr);
    }
    std::vector<char> memory_ = std::vector<char>(16384);
    struct sigaction before_ {};
};

// Signals arrive anywhere, in captures too.
TEST_P(Signals, CaptureThroughWhateverTheyInterrupt) {
    work(false, 300);
    work(true, 600);
    EXPECT_GE(seen_signals, 600);
    expect_equal_captures(1);
}

TEST_P(Signals, MayJumpOutOfACapture) {
    std::array<std::uintptr_t, 64> out{};
    static int jumps;
    for (jumps = 0; jumps < 100; ++jumps) {
        std::jmp_buf here;
        out_of_handler = &here;
        if (sigsetjmp(here, 1) == 0) work(false, 1'000'000);  // NOLINT
        compare();
    }
    out_of_handler = nullptr;
    struct itimerval never {};
    setitimer(ITIMER_REAL, &never, nullptr);
    const NativeStackCounts before = native_stack_counts();
    ASSERT_GT(capture_native_stack(out.data(), out.size()), 3U);
    EXPECT_GT(native_stack_counts().known, before.known);  // and is kept again
    expect_equal_captures(100);
}
INSTANTIATE_TEST_SUITE_P(KeptSteps, Signals, ::testing::Bool(), [](const auto& how) {
    return std::string(how.param ? "OnAnAlternateStack" : "OnTheStackOfTheThread");
});

TEST(KeptSteps, AreInheritedByTheNextThreadOnTheSameStack) {
    for (int i = 0; i < 2000; ++i) {
        std::size_t different = 1;
        std::thread([&] {
            compare();
            recurse(5);
            compare();
            different = compared.different;
        }).join();
        ASSERT_EQ(different, 0U);
    }
}

TEST(KeptSteps, AreRightInAForkedProcess) {
    recurse(30);
    const pid_t child = fork();
    if (child == 0) {
        recurse(50);
        std::thread([] { recurse(20); }).join();
        _exit(compared.different == 0 && compared.captures > 0 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    compared = {};
}

// Code that was made at run time, without tables: it pushes a frame pointer or does not.
TEST(KeptSteps, AreRightThroughCodeWithoutTables) {
#if defined(__x86_64__)
    constexpr std::array<unsigned char, 9> kWithPointer{0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3, 0x90};
    constexpr std::array<unsigned char, 9> kWithout{0x48, 0x83, 0xec, 0x28, 0xff, 0xd7, 0x48, 0x83, 0xc4};
    void* const memory =
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    auto* const code = static_cast<unsigned char*>(memory);
    std::copy(kWithPointer.begin(), kWithPointer.end(), code);
    std::copy(kWithout.begin(), kWithout.end(), code + 64);
    code[64 + 9] = 0x28;
    code[64 + 10] = 0xc3;
    for (int i = 0; i < 10; ++i) {
        for (const std::size_t at : {0U, 64U})
            reinterpret_cast<void (*)(void (*)())>(code + at)([] {
                compare();
                recurse(3);
            });
    }
    munmap(memory, 4096);
    expect_equal_captures(20);
#else
    GTEST_SKIP() << "the code is for x86-64";
#endif
}

TEST(StackBounds, AreThoseOfTheThreadsStack) {
    char here = 0;
    const auto at = reinterpret_cast<std::uintptr_t>(&here);
    const StackBounds main = stack_bounds_at(at);
    EXPECT_TRUE(main.holds(at));
    EXPECT_GE(main.high - main.low, std::uintptr_t{64} << 20);  // with the room to grow
    EXPECT_EQ(stack_bounds_at(0).high, 0U);
    EXPECT_EQ(stack_bounds_at(UINTPTR_MAX).high, 0U);
    std::thread([] {
        char inside = 0;
        const auto place = reinterpret_cast<std::uintptr_t>(&inside);
        pthread_attr_t attributes;
        ASSERT_EQ(pthread_getattr_np(pthread_self(), &attributes), 0);
        void* low = nullptr;
        std::size_t size = 0;
        pthread_attr_getstack(&attributes, &low, &size);
        pthread_attr_destroy(&attributes);
        const StackBounds bounds = stack_bounds_at(place);
        EXPECT_TRUE(bounds.holds(place));
        EXPECT_LE(bounds.low, place);
        EXPECT_EQ(bounds.high, static_cast<std::uintptr_t>(pthread_self()));
        EXPECT_LE(bounds.high, reinterpret_cast<std::uintptr_t>(low) + size);
    }).join();
}

}  // namespace
}  // namespace marey
