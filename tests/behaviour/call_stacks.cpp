// call_stacks.cpp: ranges with call stacks, from C++, through captures, and symbolized later.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <marey/all.h>

namespace {

std::string test_file(const std::string& name) {
    return (std::filesystem::path(::testing::TempDir()) / (name + "." + std::to_string(getpid()))).string();
}

std::vector<std::string> stack_of(const marey::Trace& trace, std::string_view name) {
    std::vector<std::string> texts;
    for (marey::Row row = 0; row < trace.ranges().size(); ++row) {
        if (trace.range_name(row) != name) continue;
        for (const marey::Argument& value : trace.range_arguments(row)) {
            if (trace.string(value.key) != "Call stack") continue;
            for (const marey::Argument& item : trace.list_items().subspan(value.list.first, value.list.count))
                texts.emplace_back(trace.string(item.string));
        }
    }
    return texts;
}

bool names(const std::string& entry, std::string_view function) {
    return entry.find(function) != std::string::npos;
}

[[gnu::noinline]] void inner_call() {
    MAREY_RANGE("scoped", "n", 7, "stack", marey::CallStack(), "m", 8);
    asm volatile("");
}
[[gnu::noinline]] void outer_call() {
    inner_call();
    asm volatile("");  // no tail call
}

TEST(CallStacks, ARangeCarriesItsNativeFramesInnermostFirst) {
    marey::Session session(marey::SessionOptions{});
    outer_call();
    const marey::Trace trace = session.stop();
    const std::vector<std::string> raw = stack_of(trace, "scoped");
    ASSERT_GE(raw.size(), 3u);
    EXPECT_TRUE(names(raw[0], "call_stacks+0x")) << raw[0];
    EXPECT_EQ(trace.range_arguments(0).size(), 3u);  // the other values are there
    const marey::SymbolizedTrace symbolized = marey::symbolize_trace(trace);
    const std::vector<std::string> named = stack_of(symbolized.trace, "scoped");
    ASSERT_GE(named.size(), 3u);
    std::size_t inner = 0;
    while (inner < named.size() && !names(named[inner], "inner_call")) ++inner;
    ASSERT_LT(inner + 1, named.size());
    EXPECT_TRUE(names(named[inner + 1], "outer_call")) << named[inner + 1];
    ASSERT_FALSE(symbolized.modules.empty());
    EXPECT_FALSE(symbolized.frames.empty());
}

TEST(CallStacks, MovableRangesInstantsAndOperationsCarryThemToo) {
    marey::Session session(marey::SessionOptions{});
    {
        marey::Range range("movable", "stack", marey::CallStack());
        marey::Operation operation(marey::Scope::User);
        const marey::CallStack stack;
        operation.begin("operation", {.stack = &stack});
    }
    marey::instant("instant", "stack", marey::CallStack());
    const marey::Trace trace = session.stop();
    EXPECT_GE(stack_of(trace, "movable").size(), 2u);
    EXPECT_GE(stack_of(trace, "operation").size(), 2u);
    ASSERT_EQ(trace.instants().size(), 1u);
    ASSERT_EQ(trace.instant_arguments(0).size(), 1u);
    EXPECT_EQ(trace.string(trace.instant_arguments(0)[0].key), "Call stack");
}

TEST(CallStacks, NothingIsCapturedWhileNothingRecords) {
    int captured = 0;
    const auto counted = [&] {
        ++captured;
        return marey::CallStack();
    };
    { MAREY_RANGE("off", "stack", counted()); }
    EXPECT_EQ(captured, 0);
    marey::Session session(marey::SessionOptions{});
    { MAREY_RANGE("on", "stack", counted()); }
    EXPECT_EQ(captured, 1);
}

[[gnu::noinline]] void record_deep() {
    MAREY_RANGE("deep", "stack", marey::CallStack());
}

[[gnu::noinline]] void recurse(int depth) {
    if (depth == 0) return record_deep();
    recurse(depth - 1);
    asm volatile("");
}

TEST(CallStacks, ADeepStackIsCutAndMarkedSo) {
    marey::Session session(marey::SessionOptions{});
    MAREY_RANGE("shallow", "stack", marey::CallStack());
    recurse(2000);
    const marey::Trace trace = session.stop();
    const std::vector<std::string> shallow = stack_of(trace, "shallow");
    const std::vector<std::string> deep = stack_of(trace, "deep");
    ASSERT_EQ(deep.size(), marey::CallStack::kMaxEntries);
    // The outermost frames are those of the caller, whose own line is another one.
    ASSERT_GT(shallow.size(), 2u);
    EXPECT_TRUE(
        std::equal(shallow.begin() + 1, shallow.end(), deep.end() - (shallow.end() - shallow.begin() - 1)));
    EXPECT_EQ(std::count(deep.begin(), deep.end(), "..."), 1);
    EXPECT_EQ(deep[marey::CallStack::kMaxEntries / 2 - 1], "...");
    for (marey::Row row = 0; row < trace.ranges().size(); ++row) {
        const bool is_deep = trace.range_name(row) == "deep";
        EXPECT_EQ(trace.range_arguments(row)[0].truncated, is_deep);
    }
}

TEST(CallStacks, AKilledProgramsOpenRangesKeepTheirStacks) {
    const std::string file = test_file("stacks.marey");
    const pid_t child = fork();
    if (child == 0) {
        marey::SessionOptions options;
        options.output = file;
        marey::Session session(options);
        outer_call();
        MAREY_RANGE("open", "stack", marey::CallStack());
        raise(SIGKILL);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    const marey::Trace trace = marey::Trace::load(file);
    EXPECT_GE(stack_of(trace, "open").size(), 2u);
    EXPECT_GE(stack_of(trace, "scoped").size(), 3u);
    marey::compact_capture(file, file + ".compact");
    const marey::Trace compacted = marey::Trace::load(file + ".compact");
    EXPECT_EQ(stack_of(compacted, "scoped"), stack_of(trace, "scoped"));
    compacted.save(file + ".saved");
    const marey::Trace saved = marey::Trace::load(file + ".saved");
    EXPECT_EQ(stack_of(saved, "scoped"), stack_of(trace, "scoped"));
    EXPECT_EQ(stack_of(marey::symbolize_trace(saved).trace, "scoped"),
              stack_of(marey::symbolize_trace(trace).trace, "scoped"));
    for (const char* const ending : {"", ".compact", ".saved"}) std::filesystem::remove(file + ending);
}

TEST(CallStacks, EqualStacksTakeSpaceOnceInTheCaptureAndInTheTrace) {
    const std::string file = test_file("equal_stacks.marey");
    marey::SessionOptions options;
    options.output = file;
    marey::Session session(options);
    constexpr std::size_t kRanges = 5000;
    for (std::size_t i = 0; i < kRanges; ++i) outer_call();
    const marey::Trace running = marey::Trace::load(file);  // while it is being written
    const marey::Trace trace = session.stop();
    const std::vector<std::string> one = stack_of(trace, "scoped");
    ASSERT_EQ(trace.ranges().size(), kRanges);
    const std::size_t frames = one.size() / kRanges;
    ASSERT_GE(frames, 4u);
    EXPECT_EQ(trace.list_items().size(), frames);
    EXPECT_EQ(stack_of(running, "scoped"), one);
    EXPECT_EQ(stack_of(marey::Trace::load(file), "scoped"), one);
    marey::compact_capture(file, file + ".compact");
    EXPECT_EQ(stack_of(marey::Trace::load(file + ".compact"), "scoped"), one);
    // 32 bytes of its own, 16 for each of two values, and 8 for a stack of any depth.
    EXPECT_LT(std::filesystem::file_size(file), kRanges * 80 + (std::size_t{1} << 19));
    const marey::Trace symbolized = marey::symbolize_trace(trace).trace;
    EXPECT_LT(symbolized.list_items().size(), 8 * frames);
    EXPECT_TRUE(names(stack_of(symbolized, "scoped").back(), stack_of(symbolized, "scoped")[frames - 1]));
    for (const char* const ending : {"", ".compact"}) std::filesystem::remove(file + ending);
}

TEST(CallStacks, KeepTheirNumbersWhenACaptureBeginsAndInAForkedProcess) {
    const std::string file = test_file("later.marey");
    const std::string child_file = test_file("later_child.marey");
    marey::Session in_memory(marey::SessionOptions{});
    outer_call();  // numbered before there is a file
    const pid_t child = fork();
    marey::SessionOptions options;
    options.output = child == 0 ? child_file : file;
    {
        marey::Session session(options);
        outer_call();
        { MAREY_RANGE("other", "stack", marey::CallStack()); }
        if (child == 0) raise(SIGKILL);
        session.stop();
    }
    int status = 0;
    waitpid(child, &status, 0);
    const marey::Trace whole = in_memory.stop();
    for (const std::string& each : {file, child_file}) {
        const marey::Trace trace = marey::Trace::load(each);
        EXPECT_GE(stack_of(trace, "other").size(), 2u) << each;
        const std::vector<std::string> scoped = stack_of(trace, "scoped");
        ASSERT_GE(scoped.size(), 3u) << each;
        EXPECT_TRUE(names(scoped[0], "call_stacks+0x"));
        std::filesystem::remove(each);
    }
    EXPECT_GE(stack_of(whole, "scoped").size(), 6u);
}

/// A new stack for each of many paths, so that nodes are added all the time.
[[gnu::noinline]] void take_path(unsigned path, int depth) {
    if (depth == 0) {
        MAREY_RANGE("path", "stack", marey::CallStack());
        return;
    }
    if (path % 2 != 0)
        take_path(path / 2, depth - 1);
    else
        take_path(path / 2, depth - 1);
    asm volatile("" ::"r"(path));
}

TEST(CallStacks, AreWholeHoweverEarlyTheProgramIsKilled) {
    for (unsigned kill_at = 0; kill_at < 20; ++kill_at) {
        const std::string file = test_file("killed_stacks.marey");
        int ready[2];
        ASSERT_EQ(pipe(ready), 0);
        const pid_t child = fork();
        if (child == 0) {
            marey::SessionOptions options;
            options.output = file;
            marey::Session session(options);
            std::vector<std::thread> threads;
            for (unsigned thread = 0; thread < 3; ++thread) {
                threads.emplace_back([thread, &ready] {
                    for (unsigned path = thread << 20;; ++path) {
                        take_path(path, 12);
                        if (path % 64 == 0 && write(ready[1], "", 1) != 1) _exit(1);
                    }
                });
            }
            threads[0].join();
        }
        char byte = 0;
        for (unsigned i = 0; i < 1 + kill_at * 5; ++i) ASSERT_EQ(read(ready[0], &byte, 1), 1);
        kill(child, SIGKILL);
        int status = 0;
        waitpid(child, &status, 0);
        for (const int end : ready) close(end);
        const marey::Trace trace = marey::Trace::load(file);
        std::size_t whole = 0;
        for (marey::Row row = 0; row < trace.ranges().size(); ++row) {
            if (trace.range_name(row) != "path" || trace.range_arguments(row).empty()) continue;
            ASSERT_GE(trace.range_arguments(row)[0].list.count, 14u);
            ++whole;
        }
        EXPECT_GE(whole + 3, trace.ranges().size());  // one of each thread may have been opening
        EXPECT_GE(whole, kill_at * 64);
        std::filesystem::remove(file);
    }
}

TEST(CallStacks, ManyThreadsCaptureAtOnce) {
    marey::Session session(marey::SessionOptions{});
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([] {
            for (int k = 0; k < 500; ++k) outer_call();
        });
    }
    for (std::thread& thread : threads) thread.join();
    const marey::Trace trace = session.stop();
    ASSERT_EQ(trace.ranges().size(), 2000u);
    for (marey::Row row = 0; row < 2000; ++row) ASSERT_EQ(trace.range_arguments(row).size(), 3u);
}

}  // namespace
