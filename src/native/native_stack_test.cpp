// native_stack_test.cpp: native frames are found in order, whatever links them.
#include "native/native_stack.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <string>
#include <thread>
#include <vector>

#include "native/loaded_modules.h"
#include "native/rule_table.h"

namespace marey {
namespace {

using Addresses = std::vector<std::uintptr_t>;

__attribute__((noinline)) Addresses here(std::size_t skip = 0, std::size_t room = 512) {
    Addresses addresses(room);
    addresses.resize(capture_native_stack(addresses.data(), room, skip));
    return addresses;
}

// Each calls the next through a pointer that is unknown to the compiler, and does something after it.
template <int kDepth>
__attribute__((noinline)) Addresses level(Addresses (*innermost)()) {
    Addresses (*volatile next)(Addresses(*)()) = nullptr;
    if constexpr (kDepth > 0) {
        next = level<kDepth - 1>;
        Addresses addresses = next(innermost);
        asm volatile("" ::: "memory");
        return addresses;
    }
    Addresses (*volatile last)() = innermost;
    Addresses addresses = last();
    asm volatile("" ::: "memory");
    return addresses;
}

volatile std::size_t skipped = 0;

Addresses plain() {
    return here(skipped);
}

/// Whether an address lies in the function, assumed to be no longer than this.
template <class Function>
bool in(std::uintptr_t address, Function* function) {
    const auto begin = reinterpret_cast<std::uintptr_t>(function);
    return address > begin && address < begin + 1024;
}

// S15
TEST(NativeStack, HasEveryCallerInOrder) {
    const Addresses addresses = level<3>(plain);
    ASSERT_GT(addresses.size(), 6U);
    const auto first =
        std::find_if(addresses.begin(), addresses.end(), [](auto at) { return in(at, &level<0>); });
    ASSERT_NE(first, addresses.end());
    ASSERT_GE(addresses.end() - first, 4);
    EXPECT_TRUE(in(first[1], &level<1>));
    EXPECT_TRUE(in(first[2], &level<2>));
    EXPECT_TRUE(in(first[3], &level<3>));
}

TEST(NativeStack, ReachesTheStartOfTheThread) {
    Addresses on_thread;
    std::thread([&] { on_thread = level<2>(plain); }).join();
    ASSERT_FALSE(on_thread.empty());
    const auto modules = loaded_modules();
    const LoadedModule* outermost = modules->find(on_thread.back());
    ASSERT_NE(outermost, nullptr);
    EXPECT_NE(outermost->path.find("/libc"), std::string::npos) << outermost->path;
}

TEST(NativeStack, LeavesOutSkippedFramesAndStaysWithinItsRoom) {
    const Addresses all = level<3>(plain);
    skipped = 2;
    const Addresses fewer = level<3>(plain);
    skipped = 0;
    EXPECT_EQ(fewer.size() + 2, all.size());
    EXPECT_EQ(level<3>([] { return here(0, 3); }).size(), 3U);
    EXPECT_TRUE(level<3>([] { return here(0, 0); }).empty());
}

// S20
TEST(NativeStack, EndsQuietlyWhereAFramePointerIsDamaged) {
#if defined(__aarch64__)
    std::array<std::uintptr_t, 64> room{};
    std::size_t count = 0;
    for (const std::uintptr_t wrong :
         {std::uintptr_t{0}, std::uintptr_t{1}, UINTPTR_MAX - 7, std::uintptr_t{1} << 40}) {
        asm volatile(
            "mov x19, x29\n\tmov x29, %2\n\tmov x0, %3\n\tmov x1, #64\n\tmov x2, #0\n\tmov x3, #0\n\t"
            "blr %1\n\tmov x29, x19\n\tmov %0, x0"
            : "=r"(count)
            : "r"(&capture_native_stack), "r"(wrong), "r"(room.data())
            : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14",
              "x15", "x16", "x17", "x18", "x19", "x30", "memory", "cc");
        EXPECT_GE(count, 1U);
    }
#else
    GTEST_SKIP() << "damages the frame pointer on aarch64 only";
#endif
}

Addresses from_other_stack;
ucontext_t back_to;

// A stack that the thread created itself: greenlets and fibers.
TEST(NativeStack, IsFoundOnAStackCreatedByTheProgram) {
    std::vector<char> memory(256 * 1024);
    ucontext_t other;
    getcontext(&other);
    other.uc_stack.ss_sp = memory.data();
    other.uc_stack.ss_size = memory.size();
    other.uc_link = &back_to;
    makecontext(
        &other, +[] { from_other_stack = level<2>(plain); }, 0);
    swapcontext(&back_to, &other);
    const auto first = std::find_if(from_other_stack.begin(), from_other_stack.end(),
                                    [](auto at) { return in(at, &level<0>); });
    ASSERT_GE(from_other_stack.end() - first, 3);
    EXPECT_TRUE(in(first[2], &level<2>));
    EXPECT_GT(level<2>(plain).size(), 4U);  // and the thread's own again
}

// S18
TEST(NativeStack, CachesAnAddressAfterTheFirstTime) {
    Addresses (*volatile again)(Addresses(*)()) = level<2>;
    for (int i = 0; i < 2; ++i) {
        const NativeStackCounts before = native_stack_counts();
        const std::size_t frames = again(plain).size();
        const NativeStackCounts after = native_stack_counts();
        if (i == 1) {
            EXPECT_EQ(after.looked_up, before.looked_up);
            EXPECT_GE(after.known - before.known, frames);
        }
    }
}

// S17
TEST(NativeStack, SeveralThreadsFillTheCacheAtOnce) {
    std::vector<std::thread> threads;
    std::array<std::size_t, 4> sizes{};
    for (auto& size : sizes)
        threads.emplace_back([&size] {
            for (int i = 0; i < 200; ++i) size = level<3>(plain).size();
        });
    for (auto& thread : threads) thread.join();
    EXPECT_GT(sizes[0], 5U);
    EXPECT_EQ(std::count(sizes.begin(), sizes.end(), sizes[0]), 4);
}

TEST(FrameRules, SurviveBeingPacked) {
    using Kind = FrameRule::Kind;
    using Saved = FrameRule::Saved;
    for (const FrameRule& rule :
         {FrameRule{Kind::frame_pointer, Saved::in_memory, Saved::in_memory, -8, -16, 48},
          FrameRule{Kind::stack_pointer, Saved::in_memory, Saved::same, -8, -8, (8 << 13) - 8},
          FrameRule{Kind::stack_pointer, Saved::in_memory, Saved::in_memory, -4080, -4088, 4096},
          FrameRule{Kind::stack_pointer, Saved::in_memory, Saved::in_memory, -8, 48, 96},
          FrameRule{Kind::stack_pointer, Saved::same, Saved::same, 0, 0, 0}, FrameRule{},
          FrameRule{.kind = Kind::end}}) {
        ASSERT_NE(packed(rule), 0U);
        EXPECT_EQ(unpacked(packed(rule)), rule);
    }
    // Larger than any usual frame, or not of whole words: looked up each time.
    for (const FrameRule& rule :
         {FrameRule{Kind::stack_pointer, Saved::in_memory, Saved::same, -8, -8, 8 << 13},
          FrameRule{Kind::stack_pointer, Saved::in_memory, Saved::same, -8, -8, 20},
          FrameRule{Kind::stack_pointer, Saved::in_memory, Saved::same, -12, -12, 32},
          FrameRule{Kind::stack_pointer, Saved::in_memory, Saved::in_memory, -8, 56, 96}})
        EXPECT_EQ(packed(rule), 0U);
}

#if defined(__aarch64__)
constexpr unsigned char kSp = 31;
constexpr unsigned char kFp = 29;
constexpr unsigned char kReturn = 30;
#else
constexpr unsigned char kSp = 7;
constexpr unsigned char kFp = 6;
constexpr unsigned char kReturn = 16;
#endif

FrameRule rule_of(const std::vector<unsigned char>& own, std::uintptr_t pc) {
    const std::array<unsigned char, 3> common{0x0c, kSp, 8};
    const FrameTables tables{common.data(),
                             common.data() + common.size(),
                             own.data(),
                             own.data() + own.size(),
                             4,
                             -8,
                             kReturn,
                             0x1b,
                             0x1000};
    return run_frame_tables(tables, pc);
}

// S16, S19
TEST(FrameRules, AreThoseOfTheInstructionsBeforeTheAddress) {
    const std::vector<unsigned char> own{0x41, 0x0e, 32,      static_cast<unsigned char>(0x80 | kFp),
                                         4,    0x05, kReturn, 3,    // after 4: CFA = sp + 32, both saved
                                         0x42, 0x0a, 0x0d,    kFp,  // after 12: CFA = fp + 32
                                         0x41, 0x0b, 0x06,    kFp,  // after 16: as before, fp restored
                                         0x41, 0x07, kReturn};      // after 20: no caller
    using Kind = FrameRule::Kind;
    using Saved = FrameRule::Saved;
    EXPECT_EQ(rule_of(own, 0x1003), (FrameRule{Kind::stack_pointer, Saved::same, Saved::same, 0, 0, 8}));
    EXPECT_EQ(rule_of(own, 0x1004),
              (FrameRule{Kind::stack_pointer, Saved::in_memory, Saved::in_memory, -24, -32, 32}));
    EXPECT_EQ(rule_of(own, 0x100c),
              (FrameRule{Kind::frame_pointer, Saved::in_memory, Saved::in_memory, -24, -32, 32}));
    EXPECT_EQ(rule_of(own, 0x1010),
              (FrameRule{Kind::stack_pointer, Saved::in_memory, Saved::same, -24, 0, 32}));
    EXPECT_EQ(rule_of(own, 0x1014).kind, Kind::end);
    // A register moved to another takes two operands, and is not supported.
    EXPECT_EQ(rule_of({0x09, kReturn, 3, 0x0e, 16}, 0x1000).kind, Kind::unknown);
    EXPECT_EQ(rule_of({0x09, 3, kReturn, 0x0e, 16}, 0x1000).cfa_offset, 16);
    EXPECT_EQ(rule_of({0x0f, 2, 0x77, 8}, 0x1000).kind, Kind::unknown);    // an expression
    EXPECT_EQ(rule_of({0x0f, 200, 0x77, 8}, 0x1000).kind, Kind::unknown);  // cut off
    EXPECT_EQ(rule_of({0x0b}, 0x1000).kind, Kind::unknown);
    EXPECT_EQ(rule_of({0x3f}, 0x1000).kind, Kind::unknown);
}

TEST(LoadedModules, FindTheModuleOfAnAddress) {
    const auto modules = loaded_modules();
    const LoadedModule* own = modules->find(reinterpret_cast<std::uintptr_t>(&rule_of));
    ASSERT_NE(own, nullptr);
    EXPECT_NE(own->path.find("native_test"), std::string::npos);
    const LoadedModule* libc =
        modules->find(reinterpret_cast<std::uintptr_t>(dlsym(RTLD_DEFAULT, "gnu_get_libc_version")));
    ASSERT_NE(libc, nullptr);
    EXPECT_NE(libc->path.find("/libc"), std::string::npos);
    EXPECT_EQ(libc->build_id.size(), 40U);
    EXPECT_EQ(modules->find(0), nullptr);
    EXPECT_EQ(modules->find(UINTPTR_MAX), nullptr);
    EXPECT_EQ(loaded_modules(), modules);  // nothing was loaded since
}

TEST(LoadedModules, HaveTheSameFrameTablesInTheListAndAtTheLoader) {
    const auto modules = loaded_modules();
    for (const LoadedModule& module : modules->modules) {
        const auto listed = listed_frame_table_at(module.begin);
        ASSERT_TRUE(listed) << module.path;
        EXPECT_EQ(listed->header, module.frame_header);
        const auto table = frame_table_at(module.begin, false);
        ASSERT_TRUE(table) << module.path;  // also of the kernel
        EXPECT_EQ(listed->header, table->header) << module.path;
        EXPECT_EQ(listed->end <= table->end, true);
    }
    EXPECT_FALSE(listed_frame_table_at(0));
    EXPECT_FALSE(frame_table_at(UINTPTR_MAX, true));
}

}  // namespace
}  // namespace marey
