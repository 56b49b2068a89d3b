// call_recorder_test.cpp: a fake CUPTI makes callbacks; threads, starts and stops as in real programs.
#include "sources/cuda/call_recorder.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include <marey/device.h>

#include "sources/cuda/fake_cuda_fixture.h"

namespace marey::cuda {
namespace {

constexpr std::uint32_t kLaunch = 1, kGetDevice = 2, kDriverLaunch = 1;  // two with the same number

/// The state of the fake CUPTI.
struct Subscription {
    SubscriberCallback callback = nullptr;
    void* user = nullptr;
    std::set<std::pair<std::uint32_t, std::uint32_t>> enabled;
    bool is_held = false;                 ///< by another profiler
    CuptiResult refusal = kCuptiSuccess;  ///< the result of enabling a callback
} subscription;

Cupti fake_cupti() {
    Cupti cupti{};
    cupti.subscribe = [](void** subscriber, SubscriberCallback callback, void* user,
                         SubscriberParams* params) {
        if (subscription.is_held) {
            std::strncpy(params->old_name, "Other", params->old_name_size);
            return kCuptiMultipleSubscribers;
        }
        subscription.callback = callback;
        subscription.user = user;
        *subscriber = &subscription;
        return kCuptiSuccess;
    };
    cupti.unsubscribe = [](void*) {
        subscription = {};
        return kCuptiSuccess;
    };
    cupti.enable_callback = [](std::uint32_t enable, void*, std::uint32_t domain, std::uint32_t callback) {
        if (subscription.refusal != kCuptiSuccess) return subscription.refusal;
        if (enable != 0) subscription.enabled.insert({domain, callback});
        if (enable == 0) subscription.enabled.erase({domain, callback});
        return kCuptiSuccess;
    };
    cupti.callback_name = [](std::uint32_t domain, std::uint32_t callback, const char** name) {
        *name = nullptr;
        if (domain == kRuntimeCalls && callback == kGetDevice) *name = "cudaGetDevice_v3020";
        if (domain == kRuntimeCalls && callback == kLaunch) *name = "cudaLaunchKernel_v7000";
        if (domain == kDriverCalls && callback == kDriverLaunch) *name = "cuLaunchKernel";
        return *name != nullptr ? kCuptiSuccess : 1;
    };
    return cupti;
}

using Calls = std::vector<RecordedCall>;
using Correlations = std::vector<std::uint32_t>;

class CallRecording : public ::testing::Test {
  protected:
    void TearDown() override {
        recorder().stop();
        take();
    }
    /// One per process, as in a program.
    static CallRecorder& recorder() {
        static const Cupti cupti = fake_cupti();
        static auto& made = *new CallRecorder(
            cupti, [] { ++full; }, [] { ++contexts; });
        return made;
    }
    static void start() {
        ASSERT_EQ(recorder().start(), "");
        EXPECT_EQ(recorder().trace_calls(kRuntimeCalls), kCuptiSuccess);
        EXPECT_EQ(recorder().trace_calls(kDriverCalls), kCuptiSuccess);
    }
    static void call_back(std::uint32_t domain, std::uint32_t callback, std::uint32_t site,
                          std::uint32_t correlation, std::int32_t result = 0, void* context = nullptr) {
        CallbackData data{};
        data.context = context;
        data.site = site;
        data.correlation = correlation;
        data.result = &result;
        if (subscription.callback != nullptr)
            subscription.callback(subscription.user, domain, callback, &data);
    }
    static void launch(std::uint32_t correlation, std::int32_t result = 0) {
        call_back(kRuntimeCalls, kLaunch, kCallBegins, correlation);
        call_back(kRuntimeCalls, kLaunch, kCallEnds, correlation, result);
    }
    static Calls take() {
        Calls calls;
        recorder().take([&](std::int32_t, const RecordedCall& call) { calls.push_back(call); });
        return calls;
    }
    static Correlations taken_correlations() {
        Correlations found;
        for (const RecordedCall& call : take()) found.push_back(call.correlation);
        return found;
    }
    static inline std::atomic<int> full{0};
    static inline std::atomic<int> contexts{0};
};

TEST_F(CallRecording, ACallHasItsFunctionNumberResultAndTimes) {
    start();
    const std::uint64_t before = device_ticks();
    launch(7, 719);
    std::vector<std::int32_t> threads;
    Calls calls;
    recorder().take([&](std::int32_t os_tid, const RecordedCall& call) {
        threads.push_back(os_tid);
        calls.push_back(call);
    });
    ASSERT_EQ(calls.size(), 1u);
    EXPECT_EQ(threads[0], gettid());
    EXPECT_EQ(calls[0].domain, kRuntimeCalls);
    EXPECT_EQ(calls[0].callback, kLaunch);
    EXPECT_EQ(calls[0].correlation, 7u);
    EXPECT_EQ(calls[0].result, 719);
    EXPECT_LE(before, calls[0].start);
    EXPECT_LE(calls[0].start, calls[0].end);
    EXPECT_LE(calls[0].end, device_ticks());
    EXPECT_TRUE(take().empty());  // taken only once
}

TEST_F(CallRecording, DriverCallsMadeByTheRuntimeArePartOfItsCall) {
    start();
    call_back(kRuntimeCalls, kLaunch, kCallBegins, 1);
    call_back(kDriverCalls, kDriverLaunch, kCallBegins, 1);
    call_back(kDriverCalls, kDriverLaunch, kCallEnds, 1);
    call_back(kRuntimeCalls, kLaunch, kCallEnds, 1);
    call_back(kDriverCalls, kDriverLaunch, kCallBegins, 2);
    call_back(kDriverCalls, kDriverLaunch, kCallEnds, 2);
    const Calls calls = take();
    ASSERT_EQ(calls.size(), 2u);
    EXPECT_EQ(calls[0].domain, kRuntimeCalls);
    EXPECT_EQ(calls[1].domain, kDriverCalls);
}

TEST_F(CallRecording, OnlySelectedCallsHaveTheCallback) {
    ASSERT_EQ(recorder().start(), "");
    using Enabled = std::set<std::pair<std::uint32_t, std::uint32_t>>;
    const std::pair ends{kResourceEvents, kContextEnds}, launch{kRuntimeCalls, kLaunch},
        driver{kDriverCalls, kDriverLaunch};
    EXPECT_EQ(subscription.enabled, (Enabled{ends}));
    recorder().trace_calls(kRuntimeCalls);
    EXPECT_EQ(subscription.enabled, (Enabled{ends, launch}));
    recorder().trace_calls(kDriverCalls);
    EXPECT_EQ(subscription.enabled, (Enabled{ends, launch, driver}));
}

TEST_F(CallRecording, CallsThatSpanAStartOrAStopAreHarmless) {
    start();
    call_back(kRuntimeCalls, kLaunch, kCallEnds, 1);  // it began before
    launch(2);
    call_back(kRuntimeCalls, kLaunch, kCallBegins, 3);  // it ends after the stop
    recorder().stop();
    launch(4);
    start();
    call_back(kRuntimeCalls, kLaunch, kCallEnds, 3);
    launch(5);
    EXPECT_EQ(taken_correlations(), (Correlations{2, 5}));
}

TEST_F(CallRecording, EnablingADomainDuringACallIsHarmless) {
    ASSERT_EQ(recorder().start(), "");
    recorder().trace_calls(kRuntimeCalls);
    call_back(kRuntimeCalls, kLaunch, kCallBegins, 1);
    recorder().trace_calls(kDriverCalls);
    call_back(kDriverCalls, kDriverLaunch, kCallEnds, 9);  // it began before
    call_back(kRuntimeCalls, kLaunch, kCallEnds, 1);
    launch(2);
    EXPECT_EQ(taken_correlations(), (Correlations{1, 2}));
}

TEST_F(CallRecording, ReportsWhenCuptiRefuses) {
    ASSERT_EQ(recorder().start(), "");
    subscription.refusal = 35;
    EXPECT_EQ(recorder().trace_calls(kRuntimeCalls), 35);
}

TEST_F(CallRecording, NamesTheOtherProfilerThatUsesCupti) {
    subscription.is_held = true;
    const std::string trouble = recorder().start();
    EXPECT_NE(trouble.find("Another profiler is using the GPU (Other)"), std::string::npos) << trouble;
    subscription = {};
    start();
    launch(1);
    EXPECT_EQ(take().size(), 1u);
}

TEST_F(CallRecording, CallsOfFinishedThreadsAreAllTakenOnce) {
    constexpr std::uint32_t kEach = 10'000;
    start();
    full = 0;
    std::map<std::uint32_t, int> found;
    std::atomic<bool> is_over{false};
    std::thread taker([&] {
        while (!is_over) {
            for (const RecordedCall& call : take()) ++found[call.correlation];
        }
    });
    for (std::uint32_t round = 0; round < 3; ++round) {
        std::vector<std::thread> threads;
        for (std::uint32_t thread = 0; thread < 4; ++thread) {
            threads.emplace_back([=] {
                for (std::uint32_t i = 0; i < kEach; ++i) launch((round * 4 + thread) * kEach + i);
            });
        }
        for (std::thread& thread : threads) thread.join();
    }
    is_over = true;
    taker.join();
    for (const RecordedCall& call : take()) ++found[call.correlation];
    EXPECT_EQ(found.size(), 12 * kEach);
    for (const auto& [correlation, count] : found) ASSERT_EQ(count, 1) << correlation;
    EXPECT_GE(full, 12 * static_cast<int>(kEach / CallChunk::kCalls) - 12);
}

TEST_F(CallRecording, AThreadThatOnlyCallsHasItsNameInTheTrace) {
    const marey::testing::FakeDevice& device = registered_device();
    SessionOptions options;
    options.devices = {"test"};
    for (const char* name : {"first", "second"}) {
        Session session(options);
        start();
        std::thread([name] {
            pthread_setname_np(pthread_self(), name);
            launch(1);
        }).join();
        recorder().take([&](std::int32_t os_tid, const RecordedCall& call) {
            DeviceCall recorded;
            recorded.site = DeviceLog::call_site("cudaLaunchKernel");
            recorded.os_tid = os_tid;
            recorded.start = call.start;
            recorded.end = call.end;
            device.to->write(recorded);
        });
        const Trace trace = session.stop();
        recorder().stop();
        ASSERT_EQ(trace.ranges().size(), 1u);
        const Row thread = trace.tracks()[trace.track_of(0)].thread;
        EXPECT_EQ(trace.string(trace.threads()[thread].name), name);
    }
}

TEST_F(CallRecording, TheFirstSuccessfulCallInAContextIsReported) {
    start();
    const int before = contexts;
    int one = 0;
    int other = 0;
    const auto call_in = [](void* context, std::int32_t result) {
        call_back(kRuntimeCalls, kLaunch, kCallBegins, 1);
        call_back(kRuntimeCalls, kLaunch, kCallEnds, 1, result, context);
    };
    call_in(&one, 719);
    EXPECT_EQ(contexts - before, 0);
    for (int i = 0; i < 3; ++i) {
        call_in(&one, 0);
        call_in(&other, 0);
    }
    EXPECT_EQ(contexts - before, 2);
}

TEST_F(CallRecording, NothingIsRecordedOnASuppressedThread) {
    start();
    std::thread([] {
        const SuppressCalls ours;
        launch(1);
    }).join();
    EXPECT_TRUE(take().empty());
}

TEST_F(CallRecording, NothingIsRecordedInAForkedChild) {
    start();
    recorder().forked();
    launch(1);
    EXPECT_TRUE(take().empty());
}

TEST(CallLogs, CallsWithoutSpaceAreCounted) {
    CallLog log(2 * sizeof(CallChunk));
    CallChunk* chunk = nullptr;
    int calls_for_reader = 0;
    for (std::uint32_t i = 0; i < 2 * CallChunk::kCalls + 5; ++i)
        calls_for_reader += log.write(chunk, 1, RecordedCall{.correlation = i}) ? 1 : 0;
    EXPECT_EQ(calls_for_reader, 6);  // two chunks were filled, and four more calls found no space
    EXPECT_EQ(log.take_lost(), 5u);
    std::uint32_t next = 0;
    log.take([&](std::int32_t, const RecordedCall& call) {
        next += 1;
        EXPECT_LT(call.correlation, 2 * CallChunk::kCalls);
    });
    EXPECT_EQ(next, 2 * CallChunk::kCalls);
    log.write(chunk, 1, RecordedCall{});  // there is space again
    EXPECT_EQ(log.take_lost(), 0u);
    log.take([&](std::int32_t, const RecordedCall&) { ++next; });
    EXPECT_EQ(next, 2 * CallChunk::kCalls + 1);
}

}  // namespace
}  // namespace marey::cuda
