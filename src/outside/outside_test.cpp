// outside_test.cpp: what is read of other processes is right, or checked so that it can do no harm.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <thread>

#include <marey/error.h>

#include "outside/lock_owners.h"
#include "outside/python_stacks.h"
#include "outside/waiting_thread.h"

namespace marey {
namespace {

using Words = std::array<std::uint64_t, 96>;

/// The beginning of the _PyRuntime of Python 3.13.0 on x86-64.
Words described() {
    const std::uint64_t known[] = {0x7970677562656478,
                                   0x030d00f0,
                                   0,
                                   283320,
                                   608,
                                   632,
                                   194968,
                                   7272,
                                   7264,
                                   7344,
                                   7400,
                                   7656,
                                   7640,
                                   7648,
                                   16,
                                   7752,
                                   0,
                                   7768,
                                   7760,
                                   304,
                                   0,
                                   8,
                                   16,
                                   72,
                                   152,
                                   160,
                                   232,
                                   32,
                                   80,
                                   8,
                                   0,
                                   56,
                                   72,
                                   70,
                                   208,
                                   112,
                                   120,
                                   128,
                                   136,
                                   68,
                                   52,
                                   96,
                                   104,
                                   200,
                                   16,
                                   8,
                                   416,
                                   24,
                                   88,
                                   168,
                                   32,
                                   24,
                                   16,
                                   40,
                                   24,
                                   16,
                                   48,
                                   32,
                                   40,
                                   24,
                                   16,
                                   32,
                                   16,
                                   24,
                                   40,
                                   16,
                                   32,
                                   64,
                                   32,
                                   16,
                                   40,
                                   240};
    Words words{};
    std::copy(std::begin(known), std::end(known), words.begin());
    return words;
}

TEST(PythonLayout, OfADescriptionIsTakenFromIt) {
    const PythonLayout layout = layout_of(described());
    EXPECT_EQ(layout.version, 0x030d00f0U);
    EXPECT_EQ(layout.interpreters, 632U);
    EXPECT_EQ(layout.threads, 7344U);
    EXPECT_EQ(layout.gil, 16U);
    EXPECT_EQ(layout.gil_holder, 8U);
    EXPECT_EQ(layout.gil_locked, 16U);
    EXPECT_EQ(layout.current, 72U);
    EXPECT_EQ(layout.native_id, 160U);
    EXPECT_EQ(layout.chunk, 232U);
    EXPECT_EQ(layout.instruction, 56U);
    EXPECT_EQ(layout.locals, 72U);
    EXPECT_EQ(layout.line_table, 136U);
    EXPECT_EQ(layout.first_line, 68U);
    EXPECT_EQ(layout.instructions, 200U);
    EXPECT_EQ(layout.text_bytes, 40U);
}

TEST(PythonLayout, OfAnUnknownVersionIsRefused) {
    for (const std::uint64_t version : {0x030d00b1, 0x030f00f0, 0x030c0100, 0}) {
        Words words = described();
        words[1] = version;
        EXPECT_THROW((void)layout_of(words), Error) << version;
    }
    Words words = described();
    words[2] = 1;  // free-threaded
    EXPECT_THROW((void)layout_of(words), Error);
}

TEST(PythonLayout, OfARandomDescriptionStaysWithinItsStructuresOrIsRefused) {
    std::mt19937_64 random(7);
    int refused = 0;
    for (int i = 0; i < 20'000; ++i) {
        Words words = described();
        for (int k = 0; k < 3; ++k) words[3 + random() % 70] = random() >> random() % 64;
        try {
            const PythonLayout layout = layout_of(words);
            for (const std::uint32_t offset : {layout.previous, layout.code, layout.instruction})
                EXPECT_LE(offset + 8, layout.frame_bytes);
            EXPECT_LT(layout.owner, layout.frame_bytes);
            for (const std::uint32_t offset : {layout.native_id, layout.next_thread, layout.current})
                EXPECT_LE(offset + 8, layout.thread_bytes);
            EXPECT_LE(layout.filename + 8, layout.code_bytes);
            EXPECT_LE(std::max({layout.frame_bytes, layout.thread_bytes, layout.code_bytes}), 4096U);
        } catch (const Error&) {
            ++refused;
        }
    }
    EXPECT_GT(refused, 10'000);
}

// "with a:" in line 4, "g()" in line 5, compiled by Python 3.11.
TEST(PythonLayout, OfATableOfLinesIsRead) {
    const std::string lines(
        "\x80\x00\xd8\t\n\xf0\x00\x01\x05\x0c\xf0\x00\x01\x05\x0c\xdd\x08\t\x89\x03\x8c\x03\x88\x03"
        "\xf0\x03\x01\x05\x0c\xf0\x00\x01\x05\x0c",
        34);
    EXPECT_EQ(line_at(lines, 3, 0), 3);
    EXPECT_EQ(line_at(lines, 3, 6), 4);
    EXPECT_EQ(line_at(lines, 3, 24), 5);
    EXPECT_EQ(line_at(lines, 3, 38), 4);
    EXPECT_EQ(line_at(lines, 3, 1'000'000), 0);
}

TEST(PythonLayout, OfATableOfHandlersIsRead) {
    const std::string handlers("\x83\x0f\x1e\x03\x9e\x04\"\x07\xa5\x01\"\x07", 12);
    EXPECT_EQ(handler_depth(handlers, 4), 0U);
    EXPECT_EQ(handler_depth(handlers, 6), 1U);
    EXPECT_EQ(handler_depth(handlers, 34), 1U);
    EXPECT_EQ(handler_depth(handlers, 36), 0U);
    EXPECT_EQ(handler_depth(handlers, 60), 3U);
}

TEST(PythonLayout, OfRandomTablesIsReadWithinThem) {
    std::mt19937_64 random(11);
    for (int i = 0; i < 50'000; ++i) {
        std::string table(random() % 40, '\0');
        for (char& byte : table) byte = static_cast<char>(random());
        (void)line_at(table, static_cast<std::int32_t>(random()), static_cast<std::int32_t>(random() % 100));
        (void)handler_depth(table, static_cast<std::int32_t>(random() % 100));
    }
}

/// Memory of this process, whose words are random, or lead to other places in it.
class RandomMemory {
  public:
    static constexpr std::size_t kWords = 8192;

    explicit RandomMemory(std::uint64_t seed) : random_(seed), words_(kWords) {
        const auto begin = reinterpret_cast<std::uintptr_t>(words_.data());
        for (std::uint64_t& word : words_) {
            switch (random_() % 4) {
                case 0:
                    word = random_();
                    break;
                case 1:
                    word = random_() % 4;
                    break;
                default:
                    word = begin + random_() % (kWords * 8) / 8 * 8;
            }
        }
        // Everything may be a code object.
        for (std::size_t i = 1; i < kWords; i += 2) words_[i] = begin + 16 * 8;
        words_[16 + 3] = begin + (kWords - 1) * 8;
        std::memcpy(&words_[kWords - 1], "code", 5);
    }
    std::uintptr_t address(std::size_t word) const { return reinterpret_cast<std::uintptr_t>(&words_[word]); }
    std::size_t any() { return random_() % (kWords - 600); }

  private:
    std::mt19937_64 random_;
    std::vector<std::uint64_t> words_;
};

TEST(PythonReader, ReadsRandomMemoryWithoutHarm) {
    const ProcessFiles process(getpid());
    std::size_t found = 0, torn = 0, calls = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        RandomMemory memory(seed);
        FoundPython python{.runtime = memory.address(memory.any()), .layout = layout_of(described())};
        python.layout.threads = 8 * (seed % 9);
        python.layout.next_interpreter = 8 * (seed % 5);
        if (seed % 3 == 0) python.layout.version = 0x030b0700, python.layout.entry_frame = 8;
        python.layout.interpreters = 8 * (seed % 100);
        PythonReader reader(process, python);
        std::vector<PythonThread> threads = reader.threads();
        found += threads.size();
        threads.resize(std::min<std::size_t>(threads.size(), 1));
        for (int i = 0; i < 3; ++i) threads.push_back({.state = memory.address(memory.any())});
        LockOwners owners(reader, process);
        for (const PythonThread& thread : threads) {
            CopiedMemory copies(process);
            const PythonStack stack = reader.stack(thread, copies);
            torn += stack.is_torn ? 1 : 0;
            calls += stack.calls.size();
            EXPECT_TRUE(!stack.is_torn || stack.calls.empty());
            PythonStack part = stack;
            part.calls.resize(std::min<std::size_t>(part.calls.size(), 3));
            for (const PythonCall& call : part.calls) (void)reader.line(call);
            owners.add(thread, part, memory.address(memory.any()), copies);
            (void)owners.owner(thread.native_id);
        }
    }
    EXPECT_GT(found, 0U);
    EXPECT_GT(torn, 0U);
    EXPECT_GT(calls, 0U);
}

TEST(FrameRule, OfRandomTablesIsReadWithinThem) {
    const auto page = static_cast<std::size_t>(getpagesize());
    auto* const memory =
        static_cast<std::byte*>(mmap(nullptr, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(memory, MAP_FAILED);
    std::byte* const bytes = memory + page;  // a byte before or after it ends the test
    ASSERT_EQ(mprotect(bytes, page, PROT_READ | PROT_WRITE), 0);
    const auto begin = reinterpret_cast<std::uintptr_t>(bytes);
    std::mt19937_64 random(3);
    for (int i = 0; i < 20'000; ++i) {
        for (std::size_t k = 0; k < page; k += 8) {
            const std::uint64_t word = random() >> random() % 64;
            std::memcpy(bytes + k, &word, sizeof word);
        }
        const std::size_t at = random() % (page / 8) * 8;
        const unsigned char head[] = {1, 0x1b, 0x03, 0x3b};
        if (at + 12 <= page) std::memcpy(bytes + at, head, sizeof head);
        for (std::size_t entry = at + 12; entry + 8 <= page && entry < at + 200; entry += 8) {
            const std::int32_t places[] = {
                static_cast<std::int32_t>(entry),
                static_cast<std::int32_t>(random() % page) - static_cast<std::int32_t>(at)};
            std::memcpy(bytes + entry, places, sizeof places);
        }
        (void)read_frame_rule(begin + at, begin + at + random() % 300, {begin, begin + page});
    }
    munmap(memory, 3 * page);
}

TEST(ProcessFiles, SayWhyAProcessMayNotBeRead) {
    const auto text = [](AccessFacts facts) { return denial_text(facts); };
    EXPECT_NE(text({.own_user = 1000, .target_user = 0}).find("belongs to root (use sudo"),
              std::string::npos);
    EXPECT_NE(text({1000, 1000, false, 1}).find("ptrace_scope is 1, which allows it to parents only"),
              std::string::npos);
    EXPECT_NE(text({1000, 1000, false, 2}).find("ptrace_scope is 2, which allows it to root only"),
              std::string::npos);
    EXPECT_NE(text({0, 0, true, 3}).find("ptrace_scope is 3, which forbids it"), std::string::npos);
    EXPECT_NE(text({0, 1000, false, 0}).find("--cap-add SYS_PTRACE"), std::string::npos);
    EXPECT_NE(text({1000, 1000, false, 0}).find("use sudo"), std::string::npos);
}

TEST(WaitingThread, IsSeenWithItsCallersWhileItSleeps) {
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    std::atomic<pid_t> tid{0};
    std::thread sleeper([&] {
        tid = gettid();
        char byte = 0;
        EXPECT_EQ(read(ends[0], &byte, 1), 1);
    });
    const ProcessFiles process(getpid());
    std::optional<WaitingThread> waiting;
    while (!waiting || waiting->wait() != OutsideWait::Input) waiting = waiting_thread(process, tid);
    ProcessModules modules(process);
    CopiedMemory memory(process);
    const std::vector<NativeCall> calls = native_calls(*waiting, modules, memory);
    std::string names;
    for (const NativeCall& call : calls) names += modules.function_at(call.pc) + " < ";
    EXPECT_NE(names.find("read"), std::string::npos) << names;
    EXPECT_NE(names.find("WaitingThread_IsSeenWithItsCallers"), std::string::npos) << names;
    EXPECT_TRUE(std::ranges::is_sorted(calls, {}, &NativeCall::sp));
    EXPECT_EQ(write(ends[1], "x", 1), 1);
    sleeper.join();
    EXPECT_EQ(waiting_thread(process, tid), std::nullopt);
    close(ends[0]);
    close(ends[1]);
}

}  // namespace
}  // namespace marey
