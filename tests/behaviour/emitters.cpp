// emitters.cpp: the output to NVTX and ITT, as received by test collectors. Numbers are those of
// docs/reference/parity.md.
#include <marey/emit.h>

#include <atomic>
#include <sstream>
#include <thread>

#include <marey/error.h>

#include "support/child_run.h"

namespace {

using Lines = std::vector<std::string>;

class Emitters : public child_run::ChildRun {
  protected:
    void before_exec() override {
        setenv("MAREY_TEST_COLLECTED", (folder_ + "/collected").c_str(), 1);
        setenv("NVTX_INJECTION64_PATH", MAREY_TEST_BIN_DIR "/nvtx_collector.so", 1);
        setenv("INTEL_LIBITTNOTIFY64", MAREY_TEST_BIN_DIR "/itt_collector.so", 1);
    }
    Lines emit(const std::string& tool, const std::string& mode) {
        EXPECT_EQ(run({tool, mode}, "", MAREY_TEST_BIN_DIR "/emitters_program"), 0) << error();
        Lines lines;
        std::istringstream text(child_run::text_of(folder_ + "/collected"));
        for (std::string line; std::getline(text, line);) lines.push_back(line);
        return lines;
    }
};

// L13 L14
TEST_F(Emitters, ForwardAndBackwardHalvesCarryTheSameSequenceNumber) {
    if (!marey::nvtx::is_available()) GTEST_SKIP() << "built without NVTX's header";
    EXPECT_EQ(emit("nvtx", "forward_and_backward"),
              (Lines{"1 push mul, seq = 0, op_id = 1", "1 pop", "2 push MulBackward, seq = 0, op_id = 2",
                     "2 push inner, op_id = 3", "2 pop", "2 pop"}));
}

// L13
TEST_F(Emitters, AConsumerNamesTheProducersOfItsArrays) {
    if (!marey::nvtx::is_available()) GTEST_SKIP() << "built without NVTX's header";
    EXPECT_EQ(
        emit("nvtx", "producers"),
        (Lines{"1 push make, op_id = 1", "1 pop",
               "1 push twice, op_id = 2, sizes = [[2, 3], []], input_op_ids = [(1,1), (0,-1)]", "1 pop",
               "1 push join, op_id = 3, sizes = [[2, 3], [2, 3], []], "
               "input_op_ids = [(2,0), (1,1), (0,-1)]",
               "1 pop", "1 push other, op_id = 4, sizes = [[2, 3]], input_op_ids = [(0,-1)]", "1 pop"}));
}

// L15
TEST_F(Emitters, ARangeThatMayEndElsewhereIsAStartEndRange) {
    if (!marey::nvtx::is_available()) GTEST_SKIP() << "built without NVTX's header";
    EXPECT_EQ(emit("nvtx", "elsewhere"), (Lines{"1 start 1 moved, op_id = 1", "1 push scope, op_id = 2",
                                                "2 end 1", "1 start 2 last, op_id = 3", "1 pop", "1 end 2"}));
}

// L16
TEST_F(Emitters, IttGetsTasksUnderPlainNamesWithTheTextAsMetadata) {
    EXPECT_EQ(emit("itt", "forward_and_backward"),
              (Lines{"1 domain marey", "1 begin marey:mul", "1 metadata 0 details=mul, seq = 0, op_id = 1",
                     "1 end marey", "2 begin marey:MulBackward",
                     "2 metadata 0 details=MulBackward, seq = 0, op_id = 2", "2 begin marey:inner",
                     "2 metadata 0 details=inner, op_id = 3", "2 end marey", "2 end marey"}));
}

// L16
TEST_F(Emitters, IttGetsOverlappedTasksForRangesThatMayEndElsewhere) {
    EXPECT_EQ(emit("itt", "elsewhere"),
              (Lines{"1 domain marey", "1 overlapped 1 marey:moved", "1 metadata 1 details=moved, op_id = 1",
                     "1 begin marey:scope", "1 metadata 0 details=scope, op_id = 2",
                     "2 overlapped end 1 marey", "1 overlapped 2 marey:last",
                     "1 metadata 2 details=last, op_id = 3", "1 end marey", "1 overlapped end 2 marey"}));
}

// L8 L15
TEST(Emitting, TwoOfAKindAtOnceAreAnErrorAndSessionsDoNotMatter) {
    marey::Session session;
    session.start();
    {
        marey::IttEmitter first;
        EXPECT_THROW(marey::IttEmitter(), marey::Error);
        { MAREY_RANGE("both"); }
        first.stop();
        first.stop();
        const marey::IttEmitter second;
    }
    EXPECT_EQ(session.stop().ranges().size(), 1u);
}

TEST(Emitting, ThreadsEmitWhileEmittersComeAndGo) {
    std::atomic<bool> is_done{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            while (!is_done) {
                marey::Range moved("moved");
                MAREY_RANGE("outer");
                const std::int64_t sizes[] = {3};
                const marey::ArrayView array{.sizes = sizes, .storage = &sizes};
                marey::Operation op;
                op.begin("op", {}, {marey::Value(array)});
                const marey::Value outputs[] = {marey::Value(array)};
                op.set_outputs(outputs);
                marey::instant("here");
                marey::itt::range_push("by hand");
                marey::itt::range_pop();
            }
        });
    }
    for (int i = 0; i < 200; ++i) {
        const marey::IttEmitter itt({.record_shapes = i % 2 == 0});
        std::optional<marey::NvtxEmitter> nvtx;
        if (marey::nvtx::is_available()) nvtx.emplace(marey::EmitOptions{.record_shapes = i % 3 == 0});
        std::this_thread::yield();
    }
    is_done = true;
    for (std::thread& thread : threads) thread.join();
}

}  // namespace
