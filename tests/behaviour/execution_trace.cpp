// execution_trace.cpp: the graph of ranges. Numbers are those of docs/reference/parity.md.
#include <marey/execution_trace.h>

#include <atomic>
#include <thread>

#include <marey/error.h>

#include "support/child_run.h"

namespace {

using child_run::contains;
using marey::ArrayView;
using marey::ExecutionTrace;
using marey::Operation;
using marey::Scope;
using marey::Value;

class ExecutionTraces : public child_run::ChildRun {
  protected:
    std::string path(const char* name = "et.json") const { return folder_ + "/" + name; }
    /// The node of that name, as its text.
    std::string node(const std::string& name) const {
        const std::string text = child_run::text_of(path());
        const std::size_t at = text.find("\"name\": \"" + name + "\"");
        if (at == std::string::npos) return "";
        const std::size_t from = text.rfind('{', at);
        return text.substr(from, text.find("\n      }", at) - from);
    }
    /// The number after `key` in a text.
    static long long number(const std::string& text, const std::string& key) {
        const std::size_t at = text.find(key);
        return at == std::string::npos ? -1000 : std::atoll(text.c_str() + at + key.size());
    }
    static long long attribute(const std::string& text, const std::string& name) {
        const std::size_t at = text.find("\"name\": \"" + name + "\", \"type\"");
        return at == std::string::npos ? -1000 : number(text.substr(at), "\"value\": ");
    }
};

// E1
TEST_F(ExecutionTraces, OnlyOneRunsAtATime) {
    {
        const ExecutionTrace first(path());
        EXPECT_THROW(ExecutionTrace(path("second.json")), marey::Error);
        EXPECT_FALSE(std::filesystem::exists(path("second.json")));
    }
    const ExecutionTrace third(path("third.json"));
    EXPECT_TRUE(std::filesystem::exists(path("third.json")));
    EXPECT_THROW(ExecutionTrace(folder_ + "/none/x.json"), marey::Error);
}

// E1
TEST_F(ExecutionTraces, StartingAFinishedOneIsAnErrorAndFinishingTwiceIsHarmless) {
    ExecutionTrace trace(path());
    trace.finish();
    trace.finish();
    trace.stop();
    EXPECT_FALSE(trace.is_running());
    EXPECT_THROW(trace.start(), marey::Error);
}

// E2 E3
TEST_F(ExecutionTraces, NoInputsAreGatheredWhileItIsStopped) {
    ExecutionTrace trace(path());
    EXPECT_FALSE(Operation().needs_inputs());
    trace.start();
    EXPECT_TRUE(Operation().needs_inputs());
    trace.stop();
    EXPECT_FALSE(Operation().is_active());
    trace.start();
    EXPECT_TRUE(Operation().needs_outputs());
}

// E5
TEST_F(ExecutionTraces, ANodesIdIsTheRecordFunctionIdOfTheChromeTrace) {
    marey::Session session;
    session.start();
    ExecutionTrace trace(path());
    trace.start();
    { MAREY_RANGE("scoped"); }
    { MAREY_RANGE("valued", "key", 5); }
    { const marey::Range moved("moved"); }
    {
        Operation op;
        op.begin("operation", {.sequence = 3});
    }
    trace.finish();
    marey::write_chrome_json(session.stop(), path("chrome.json"));
    const std::string chrome = child_run::text_of(path("chrome.json"));
    for (const char* const name : {"scoped", "valued", "moved", "operation"}) {
        const long long id = attribute(node(name), "rf_id");
        ASSERT_GT(id, 0) << name;
        const std::size_t at = chrome.find(std::string("\"name\":\"") + name + "\"");
        const std::size_t line = at == std::string::npos ? at : chrome.find('\n', at);
        const std::string event = chrome.substr(chrome.rfind('\n', at) + 1, line - chrome.rfind('\n', at));
        EXPECT_TRUE(contains(event, "\"Record function id\":" + std::to_string(id))) << event;
    }
}

// E6
TEST_F(ExecutionTraces, ABackwardHalfNamesTheTopOfItsForwardThread) {
    ExecutionTrace trace(path());
    trace.start();
    {
        Operation forward;
        forward.begin("forward", {.sequence = 5});
        const std::uint32_t forward_thread = marey::current_thread_id();
        std::thread([=] {
            Operation backward(Scope::BackwardFunction);
            backward.begin("backward", {.sequence = 5, .forward_thread = forward_thread});
        }).join();
        std::thread([=] {
            Operation lost(Scope::BackwardFunction);
            lost.begin("lost", {.sequence = 6, .forward_thread = 4000000});
        }).join();
    }
    trace.finish();
    EXPECT_EQ(attribute(node("backward"), "fw_parent"), number(node("forward"), "\"id\": "));
    EXPECT_EQ(attribute(node("backward"), "fw_tid"), attribute(node("forward"), "tid"));
    EXPECT_EQ(attribute(node("backward"), "seq_id"), 5);
    EXPECT_EQ(attribute(node("backward"), "scope"), 1);
    EXPECT_EQ(attribute(node("forward"), "fw_parent"), 0);
    EXPECT_EQ(attribute(node("lost"), "fw_parent"), 0);
}

// E9
TEST_F(ExecutionTraces, ArraysAreIdentifiedByTheirMemoryUntilItIsFreed) {
    const std::int64_t row[] = {6}, grid[] = {2, 3};
    float memory[6] = {};
    const ArrayView flat{.dtype = marey::DType::Float32, .sizes = row, .storage = memory};
    const ArrayView square{.dtype = marey::DType::Float32, .sizes = grid, .storage = memory};
    ExecutionTrace trace(path());
    trace.start();
    {
        Operation op;
        op.begin("view", {}, {Value(flat)});
        const Value outputs[] = {Value(square)};
        op.set_outputs(outputs);
    }
    {
        Operation op;
        op.begin("use", {}, {Value(square), Value(flat)});
    }
    marey::report_allocation(memory, -24, 0, 0);
    {
        Operation op;
        op.begin("reuse", {}, {Value(flat)});
    }
    trace.finish();
    // thread 2; view 3, its storage 4, flat 5, square 6; use 7; reuse 8, another storage 9, another array 10
    EXPECT_TRUE(contains(node("view"), R"("inputs": {"values": [[5,4,0,6,4,"cpu"]])"));
    EXPECT_TRUE(contains(node("view"), R"("outputs": {"values": [[6,4,0,6,4,"cpu"]], "shapes": [[2,3]])"));
    EXPECT_TRUE(contains(node("use"), R"("values": [[6,4,0,6,4,"cpu"],[5,4,0,6,4,"cpu"]])"));
    EXPECT_TRUE(contains(node("reuse"), R"("values": [[10,9,0,6,4,"cpu"]])"));
}

// E11
TEST_F(ExecutionTraces, RangesThatEndOutOfOrderOrElsewhereKeepTheirParents) {
    ExecutionTrace trace(path());
    trace.start();
    {
        marey::Range moved("moved");
        MAREY_RANGE("outer");
        std::thread([&] { moved.end(); }).join();
        { MAREY_RANGE("first"); }
        trace.stop();
        { MAREY_RANGE("unseen"); }
        trace.start();
        { MAREY_RANGE("second"); }
    }
    { MAREY_RANGE("last"); }
    trace.finish();
    const long long outer = number(node("outer"), "\"id\": ");
    EXPECT_EQ(number(node("first"), "\"ctrl_deps\": "), outer);
    EXPECT_EQ(number(node("second"), "\"ctrl_deps\": "), outer);
    EXPECT_EQ(number(node("last"), "\"ctrl_deps\": "), number(node("moved"), "\"ctrl_deps\": "));
    EXPECT_EQ(node("unseen"), "");
}

// E8 E12
TEST_F(ExecutionTraces, ThreadsMayRunWhileItStartsStopsAndEnds) {
    std::atomic<bool> is_done{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            while (!is_done) {
                MAREY_RANGE("outer");
                const std::int64_t sizes[] = {3};
                const ArrayView array{.sizes = sizes, .storage = &sizes};
                Operation op;
                op.begin("op", {}, {Value(array), Value(5)});
            }
        });
    }
    for (int i = 0; i < 20; ++i) {
        ExecutionTrace trace(path());
        for (int j = 0; j < 5; ++j) {
            trace.start();
            std::this_thread::yield();
            trace.stop();
        }
        trace.start();
    }
    is_done = true;
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(child_run::text_of(path()).ends_with("}\n"));
}

}  // namespace
