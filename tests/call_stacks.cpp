// call_stacks.cpp: ranges that carry where they began, from C++, through captures, and named on another day.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include <kymo/kymo.h>

namespace {

std::string test_file(const std::string& name) {
    return (std::filesystem::path(::testing::TempDir()) / (name + "." + std::to_string(getpid()))).string();
}

std::vector<std::string> stack_of(const kymo::Trace& trace, std::string_view name) {
    std::vector<std::string> texts;
    for (kymo::Row row = 0; row < trace.ranges().size(); ++row) {
        if (trace.range_name(row) != name) continue;
        for (const kymo::Argument& value : trace.range_arguments(row)) {
            if (trace.string(value.key) != "Call stack") continue;
            for (const kymo::Argument& item : trace.list_items().subspan(value.list.first, value.list.count))
                texts.emplace_back(trace.string(item.string));
        }
    }
    return texts;
}

bool names(const std::string& entry, std::string_view function) {
    return entry.find(function) != std::string::npos;
}

[[gnu::noinline]] void inner_call() {
    KYMO_RANGE("scoped", "n", 7, "stack", kymo::CallStack(), "m", 8);
    asm volatile("");
}
[[gnu::noinline]] void outer_call() {
    inner_call();
    asm volatile("");  // no tail call
}

TEST(CallStacks, ARangeCarriesItsNativeFramesInnermostFirst) {
    kymo::Session session(kymo::SessionOptions{});
    outer_call();
    const kymo::Trace trace = session.stop();
    const std::vector<std::string> raw = stack_of(trace, "scoped");
    ASSERT_GE(raw.size(), 3u);
    EXPECT_TRUE(names(raw[0], "call_stacks+0x")) << raw[0];
    EXPECT_EQ(trace.range_arguments(0).size(), 3u);  // the other values are there
    const kymo::SymbolizedTrace symbolized = kymo::symbolize_trace(trace);
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
    kymo::Session session(kymo::SessionOptions{});
    {
        kymo::Range range("movable", "stack", kymo::CallStack());
        kymo::Operation operation(kymo::Scope::User);
        const kymo::CallStack stack;
        operation.begin("operation", {.stack = &stack});
    }
    kymo::instant("instant", "stack", kymo::CallStack());
    const kymo::Trace trace = session.stop();
    EXPECT_GE(stack_of(trace, "movable").size(), 2u);
    EXPECT_GE(stack_of(trace, "operation").size(), 2u);
    ASSERT_EQ(trace.instants().size(), 1u);
    ASSERT_EQ(trace.instant_arguments(0).size(), 1u);
    EXPECT_EQ(trace.string(trace.instant_arguments(0)[0].key), "Call stack");
}

TEST(CallStacks, NothingIsCapturedWhileNobodyRecords) {
    int captured = 0;
    const auto counted = [&] {
        ++captured;
        return kymo::CallStack();
    };
    { KYMO_RANGE("off", "stack", counted()); }
    EXPECT_EQ(captured, 0);
    kymo::Session session(kymo::SessionOptions{});
    { KYMO_RANGE("on", "stack", counted()); }
    EXPECT_EQ(captured, 1);
}

[[gnu::noinline]] void recurse(int depth) {
    if (depth == 0) {
        KYMO_RANGE("deep", "stack", kymo::CallStack());
        return;
    }
    recurse(depth - 1);
    asm volatile("");
}

TEST(CallStacks, ADeepStackIsCutAndMarkedSo) {
    kymo::Session session(kymo::SessionOptions{});
    recurse(2000);
    const kymo::Trace trace = session.stop();
    ASSERT_EQ(trace.ranges().size(), 1u);
    const auto values = trace.range_arguments(0);
    ASSERT_EQ(values.size(), 1u);
    EXPECT_EQ(values[0].list.count, kymo::CallStack::kMost);
    EXPECT_TRUE(values[0].truncated);
}

TEST(CallStacks, AKilledProgramsOpenRangesKeepTheirStacks) {
    const std::string file = test_file("stacks.kymo");
    const pid_t child = fork();
    if (child == 0) {
        kymo::SessionOptions options;
        options.output = file;
        kymo::Session session(options);
        outer_call();
        KYMO_RANGE("open", "stack", kymo::CallStack());
        raise(SIGKILL);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    const kymo::Trace trace = kymo::Trace::load(file);
    EXPECT_GE(stack_of(trace, "open").size(), 2u);
    EXPECT_GE(stack_of(trace, "scoped").size(), 3u);
    kymo::compact_capture(file, file + ".compact");
    const kymo::Trace compacted = kymo::Trace::load(file + ".compact");
    EXPECT_EQ(stack_of(compacted, "scoped"), stack_of(trace, "scoped"));
    compacted.save(file + ".saved");
    const kymo::Trace saved = kymo::Trace::load(file + ".saved");
    EXPECT_EQ(stack_of(saved, "scoped"), stack_of(trace, "scoped"));
    EXPECT_EQ(stack_of(kymo::symbolize_trace(saved).trace, "scoped"),
              stack_of(kymo::symbolize_trace(trace).trace, "scoped"));
    for (const char* const ending : {"", ".compact", ".saved"}) std::filesystem::remove(file + ending);
}

TEST(CallStacks, ManyThreadsCaptureAtOnce) {
    kymo::Session session(kymo::SessionOptions{});
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([] {
            for (int k = 0; k < 500; ++k) outer_call();
        });
    }
    for (std::thread& thread : threads) thread.join();
    const kymo::Trace trace = session.stop();
    ASSERT_EQ(trace.ranges().size(), 2000u);
    for (kymo::Row row = 0; row < 2000; ++row) ASSERT_EQ(trace.range_arguments(row).size(), 3u);
}

}  // namespace
