// cupti_source_test.cpp: starts, stops and flushes, with a fake CUPTI that remembers the calls.
#include "sources/cuda/cupti_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <thread>

#include <marey/nvtx.h>

#include "sources/cuda/cuda_contexts.h"
#include "sources/cuda/fake_cuda_fixture.h"

namespace marey::cuda {
namespace {

using Kinds = std::set<std::uint32_t>;
constexpr std::uint64_t kSecond = 1'000'000'000;
const Kinds kDefaultKinds = {kActivityKernel, kActivityMemcpy, kActivityMemcpyPeer, kActivityMemset,
                             kActivityOverhead};

bool has_fact(const Trace& trace, std::string_view key) {
    return std::any_of(trace.metadata().begin(), trace.metadata().end(),
                       [key](const MetadataInfo& fact) { return fact.key == key; });
}

class CuptiSources : public ::testing::Test {
  protected:
    explicit CuptiSources(std::chrono::milliseconds linger = std::chrono::hours(1))
        : state_(FakeCuda::begin()), log_("stand-in") {
        // Never destroyed, as in programs, because its thread keeps running.
        static auto& made = *new std::vector<std::unique_ptr<CuptiSource>>;
        made.push_back(std::make_unique<CuptiSource>(linger));
        source_ = made.back().get();
    }
    ~CuptiSources() override {
        stop();
        source_->finish();
        forget_contexts();
    }
    std::string start(std::uint32_t activities = kDeviceDefault, bool memory = false) {
        return source_->record({activities, memory}, log_);
    }
    void stop() { source_->record({}, log_); }
    Kinds kinds() {
        std::lock_guard lock(state_.mutex);
        return state_.kinds;
    }

    FakeCuda& state_;
    DeviceLog log_;
    CuptiSource* source_ = nullptr;
};

/// CUPTI is disabled right after the last session.
class BriefCuptiSources : public CuptiSources {
  protected:
    BriefCuptiSources() : CuptiSources(std::chrono::milliseconds(0)) {}
};

TEST_F(CuptiSources, EnablesRequestedKindsAndReleasesCuptiAtTheStop) {
    EXPECT_EQ(start(), "");
    EXPECT_EQ(kinds(), kDefaultKinds);
    EXPECT_TRUE(state_.is_subscribed);
    stop();
    EXPECT_FALSE(state_.is_subscribed);
    EXPECT_EQ(kinds(), kDefaultKinds);  // still enabled for a while
}

TEST_F(CuptiSources, DisablesNothingWhileSomethingRecords) {
    start();
    start(kDeviceKernels);
    EXPECT_EQ(kinds(), kDefaultKinds);
    start(kDeviceAll);
    EXPECT_EQ(kinds().count(kActivityEvent), 1u);
    EXPECT_EQ(kinds().count(kActivitySynchronization), 1u);
    EXPECT_EQ(state_.disabled, 0);
}

TEST_F(BriefCuptiSources, DisablesCuptiAfterTheLastSession) {
    start();
    stop();
    EXPECT_TRUE(state_.wait_until([&] { return state_.kinds.empty() && !state_.is_subscribed; }));
    EXPECT_EQ(start(), "");
    EXPECT_EQ(state_.buffers_given, 2);  // another profiler may have registered its own
}

TEST_F(BriefCuptiSources, LeavesTheKindsOfTheNextProfilerAlone) {
    start();
    {
        std::lock_guard lock(state_.mutex);
        state_.is_held = true;
    }
    const int before = state_.subscriptions;
    stop();
    EXPECT_TRUE(state_.wait_until([&] { return state_.subscriptions > before; }));
    EXPECT_NE(start(), "");  // this waits for the worker
    EXPECT_EQ(kinds(), kDefaultKinds);
    EXPECT_EQ(state_.disabled, 0);
    {
        std::lock_guard lock(state_.mutex);
        state_.is_held = false;
        state_.kinds.clear();
    }
    EXPECT_EQ(start(), "");
    EXPECT_EQ(kinds(), kDefaultKinds);
    EXPECT_EQ(state_.buffers_given, 2);
}

TEST_F(CuptiSources, ReportsThatAnotherProfilerUsesTheGpu) {
    state_.is_held = true;
    EXPECT_NE(start().find("Another profiler is using the GPU"), std::string::npos);
    EXPECT_TRUE(kinds().empty());
}

TEST_F(CuptiSources, ASessionThatWasRefusedTouchesNothingOfTheOtherProfiler) {
    start();
    stop();
    {
        std::lock_guard lock(state_.mutex);
        state_.is_held = true;
        state_.flushes = 0;
        state_.pushed.clear();
    }
    EXPECT_NE(start(), "");
    EXPECT_TRUE(source_->flush(30 * kSecond, true));
    EXPECT_EQ(state_.flushes, 0);
    EXPECT_TRUE(state_.pushed.empty());
}

TEST_F(CuptiSources, ReportsWhatCuptiRefuses) {
    state_.refusal = 35;
    const std::string trouble = start();
    EXPECT_NE(trouble.find("cannot record all requested activities: refused (35)"), std::string::npos)
        << trouble;
}

TEST_F(CuptiSources, AFlushDoesNotWaitForAGpuThatHangs) {
    start();
    {
        std::lock_guard lock(state_.mutex);
        state_.is_hung = true;
    }
    EXPECT_FALSE(source_->flush(kSecond / 50, true));
    {
        std::lock_guard lock(state_.mutex);
        state_.is_hung = false;
    }
    state_.changed.notify_all();
    EXPECT_TRUE(source_->flush(30 * kSecond, true));
}

TEST_F(CuptiSources, UnifiedMemoryIsRecordedOnceThereIsAContext) {
    state_.has_primary = false;
    EXPECT_EQ(start(kDeviceDefault, true), "");
    EXPECT_EQ(kinds().count(kActivityUnifiedMemory), 0u);
    {
        std::lock_guard lock(state_.mutex);
        state_.has_primary = true;
    }
    source_->flush(30 * kSecond, false);
    EXPECT_EQ(kinds().count(kActivityUnifiedMemory), 1u);
    source_->flush(30 * kSecond, false);
    EXPECT_EQ(state_.configured, std::vector<std::uint32_t>{0});
}

TEST_F(CuptiSources, ReportsTheDeviceBeforeASessionStops) {
    registered_device();
    Session session({.devices = {"test"}});
    start();
    ASSERT_TRUE(state_.wait_until([&] { return state_.flushes > 0; }));  // the first is not requested
    const Trace trace = session.snapshot();
    EXPECT_TRUE(has_fact(trace, "deviceProperties"));
    EXPECT_TRUE(has_fact(trace, "cuda_driver_version"));
    EXPECT_TRUE(has_fact(trace, "cupti_version"));
}

/// CUDA is not initialised yet; the driver will call Marey when it is.
class EarlyCuptiSources : public CuptiSources {
  protected:
    EarlyCuptiSources() {
        state_.is_initialized = false;
        setenv("CUDA_INJECTION64_PATH", nvtx::library_path().c_str(), 1);
    }
    ~EarlyCuptiSources() override { unsetenv("CUDA_INJECTION64_PATH"); }
    bool is_cupti_touched() {
        std::lock_guard lock(state_.mutex);
        return state_.subscriptions + state_.buffers_given != 0 || !state_.kinds.empty();
    }
};

TEST_F(EarlyCuptiSources, DoNotTouchCuptiUntilCudaIsInitialised) {
    EXPECT_EQ(start(kDeviceKernels), "");
    EXPECT_EQ(start(), "");
    EXPECT_TRUE(source_->flush(30 * kSecond, true));
    EXPECT_FALSE(is_cupti_touched());
    source_->begins();
    EXPECT_TRUE(state_.is_subscribed);
    EXPECT_EQ(kinds(), kDefaultKinds);
    stop();
    EXPECT_FALSE(state_.is_subscribed);
    EXPECT_EQ(start(), "");  // the driver calls Marey only once
    EXPECT_TRUE(state_.is_subscribed);
}

TEST_F(EarlyCuptiSources, DoNotStartForSessionsThatHaveEnded) {
    start();
    stop();
    source_->begins();
    EXPECT_FALSE(is_cupti_touched());
    EXPECT_EQ(start(), "");
    EXPECT_EQ(kinds(), kDefaultKinds);
}

TEST_F(EarlyCuptiSources, StartAtOnceIfTheDriverCallsAnotherTool) {
    setenv("CUDA_INJECTION64_PATH", "/opt/other/libother.so", 1);
    EXPECT_EQ(start(), "");
    EXPECT_EQ(kinds(), kDefaultKinds);
}

TEST_F(EarlyCuptiSources, RecordInAChildForkedBeforeCudaIsInitialised) {
    start();
    source_->forked();
    EXPECT_EQ(start(), "");
    source_->begins();
    EXPECT_EQ(kinds(), kDefaultKinds);
}

TEST_F(EarlyCuptiSources, DoNotStartInAChildThatRecordsNothing) {
    start();
    source_->forked();
    source_->begins();
    EXPECT_FALSE(is_cupti_touched());
}

TEST_F(EarlyCuptiSources, ARefusalAtThatTimeIsAProblemOfTheTrace) {
    registered_device();
    Session session({.devices = {"test"}});
    start();
    state_.is_held = true;
    source_->begins();
    const std::string text = marey::testing::problem_text(session.stop(), "device_not_recorded");
    EXPECT_NE(text.find("Another profiler is using the GPU"), std::string::npos) << text;
}

TEST_F(CuptiSources, TheDeviceIsReportedEvenIfTheSessionWasRefused) {
    registered_device();
    Session session({.devices = {"test"}});
    state_.is_held = true;
    EXPECT_NE(start(), "");
    source_->flush(30 * kSecond, true);
    EXPECT_TRUE(has_fact(session.stop(), "deviceProperties"));
}

TEST_F(CuptiSources, AForkedChildThatCannotUseCudaHasNoProblem) {
    start();
    source_->flush(30 * kSecond, false);  // detects that CUDA is in use
    stop();
    source_->forked();
    EXPECT_EQ(start(), "");
}

TEST_F(CuptiSources, NothingStartsAfterTheEndOfTheProgram) {
    start();
    source_->finish();
    EXPECT_FALSE(state_.is_subscribed);
    EXPECT_TRUE(kinds().empty());
    EXPECT_EQ(start(), "");
    EXPECT_TRUE(kinds().empty());
    EXPECT_FALSE(state_.is_subscribed);
}

TEST_F(CuptiSources, ReportsThatItDoesNotRecordInAForkedChild) {
    start();
    stop();
    source_->forked();
    EXPECT_NE(start().find("forked from one that recorded a GPU"), std::string::npos);
}

TEST_F(CuptiSources, SessionsMayStartAndStopOnSeveralThreadsWhileOthersFlush) {
    std::atomic<bool> is_over{false};
    std::thread flushing([&] {
        while (!is_over) source_->flush(30 * kSecond, true);
    });
    for (int i = 0; i < 200; ++i) {
        EXPECT_EQ(start(), "");
        if (i % 3 == 0) stop();
    }
    is_over = true;
    flushing.join();
    EXPECT_EQ(kinds(), kDefaultKinds);
}

}  // namespace
}  // namespace marey::cuda
