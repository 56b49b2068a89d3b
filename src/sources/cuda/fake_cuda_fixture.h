// fake_cuda_fixture.h: a fake driver and CUPTI for tests, which only remember the calls. Tests on a real GPU
// are in tests/behaviour/device_cuda.cpp; these cover situations that a GPU does not produce on demand:
// refusals, hangs, and another profiler.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "record/devices/device_fixture.h"
#include "sources/cuda/cuda_libraries.h"

namespace marey::cuda {

/// A device that sessions can request as "test"; the tests write its records themselves.
inline marey::testing::FakeDevice& registered_device() {
    static const auto device = [] {
        auto made = std::make_shared<marey::testing::FakeDevice>("test", DeviceType::Cuda);
        register_device(made);
        return made;
    }();
    return *device;
}

/// The state of the fake. Guarded by its mutex; callbacks are made without holding it.
struct FakeCuda {
    std::mutex mutex;
    std::condition_variable changed;

    // The driver: one device.
    bool is_initialized = true;
    bool has_primary = true;  ///< whether the device has its primary context
    std::set<void*> destroyed;
    std::vector<void*> pushed;        ///< contexts, in order of use
    std::map<void*, int> waiting_in;  ///< threads that wait for their work
    bool is_hung = false;             ///< work does not end

    // CUPTI.
    bool is_held = false;  ///< by another profiler
    bool is_subscribed = false;
    int subscriptions = 0;
    CuptiResult refusal = kCuptiSuccess;  ///< the result of enabling a kind
    std::set<std::uint32_t> kinds;
    int disabled = 0;  ///< kinds, so far
    int buffers_given = 0;
    int flushes = 0;
    std::vector<std::uint32_t> configured;  ///< devices, for unified memory

    static FakeCuda& get() {
        static auto& fake_cuda = *new FakeCuda;
        return fake_cuda;
    }
    /// Resets the state, and makes libraries() return the fake.
    static FakeCuda& begin();

    template <class Condition>
    bool wait_until(Condition condition) {
        std::unique_lock lock(mutex);
        return changed.wait_for(lock, std::chrono::seconds(30), condition);
    }
    static void* primary() { return reinterpret_cast<void*>(std::uintptr_t{0x1000}); }
};

namespace fake_cuda {

inline thread_local std::vector<void*> current;  ///< contexts of the thread

template <class Use>
int with(Use use) {
    FakeCuda& state = FakeCuda::get();
    int result = 0;
    {
        std::lock_guard lock(state.mutex);
        result = use(state);
    }
    state.changed.notify_all();
    return result;
}

inline int push(void* context) {
    return with([&](FakeCuda& state) {
        state.pushed.push_back(context);
        if (state.destroyed.count(context) != 0) return 709;
        current.push_back(context);
        return 0;
    });
}

inline int synchronize() {
    FakeCuda& state = FakeCuda::get();
    std::unique_lock lock(state.mutex);
    ++state.waiting_in[current.back()];
    state.changed.notify_all();
    state.changed.wait(lock, [&] { return !state.is_hung; });
    --state.waiting_in[current.back()];
    return 0;
}

inline Driver driver() {
    Driver made{};
    made.driver_version = [](int* version) { return *version = 13000, 0; };
    made.device_count = [](int* count) {
        return with(
            [&](FakeCuda& state) { return *count = 1, state.is_initialized ? 0 : kCudaNotInitialized; });
    };
    made.device_name = [](char* name, int, int) { return *name = 0, 0; };
    made.device_memory = [](std::size_t* bytes, int) { return *bytes = 1, 0; };
    made.device_attribute = [](int*, int, int) { return 1; };
    made.primary_state = [](int, unsigned*, int* active) {
        return with([&](FakeCuda& state) { return *active = state.has_primary ? 1 : 0, 0; });
    };
    made.primary_retain = [](void** context, int) { return *context = FakeCuda::primary(), 0; };
    made.primary_release = [](int) { return 0; };
    made.context_push = &push;
    made.context_pop = [](void** context) { return *context = current.back(), current.pop_back(), 0; };
    made.context_device = [](int* device) { return *device = 0, 0; };
    made.context_id = [](void* context, unsigned long long* id) {
        return *id = reinterpret_cast<std::uintptr_t>(context), 0;
    };
    made.context_synchronize = &synchronize;
    made.capture_mode = [](int*) { return 0; };
    made.module_load = [](void**, const void*) { return 1; };  // no clock is measured
    made.error_name = [](CudaResult, const char** name) { return *name = "error", 0; };
    return made;
}

inline Cupti cupti() {
    Cupti made{};
    made.result_string = [](CuptiResult, const char** text) { return *text = "refused", 0; };
    made.callback_name = [](std::uint32_t, std::uint32_t callback, const char** name) {
        return *name = callback == 1 ? "cuLaunchKernel" : nullptr, 0;
    };
    made.set_timestamps = [](TimestampFunction) { return 0; };
    made.set_buffers = [](RequestBuffer, CompleteBuffer) {
        return with([](FakeCuda& state) { return ++state.buffers_given, 0; });
    };
    made.enable = [](std::uint32_t kind) {
        return with([&](FakeCuda& state) {
            if (state.refusal == kCuptiSuccess) state.kinds.insert(kind);
            return state.refusal;
        });
    };
    made.disable = [](std::uint32_t kind) {
        return with([&](FakeCuda& state) { return ++state.disabled, state.kinds.erase(kind), 0; });
    };
    made.next_record = [](std::uint8_t*, std::size_t, ActivityRecord**) { return kCuptiMaxLimitReached; };
    made.dropped = [](void*, std::uint32_t, std::size_t*) { return 1; };
    made.flush_all = [](std::uint32_t) { return with([](FakeCuda& state) { return ++state.flushes, 0; }); };
    made.subscribe = [](void** subscriber, SubscriberCallback, void*, SubscriberParams*) {
        return with([&](FakeCuda& state) {
            ++state.subscriptions;
            if (state.is_held || state.is_subscribed) return kCuptiMultipleSubscribers;
            state.is_subscribed = true;
            *subscriber = &state;
            return kCuptiSuccess;
        });
    };
    made.unsubscribe = [](void*) {
        return with([](FakeCuda& state) { return state.is_subscribed = false, 0; });
    };
    made.enable_callback = [](std::uint32_t, void*, std::uint32_t, std::uint32_t) { return 0; };
    made.configure_unified_memory = [](UnifiedMemoryConfig* config, std::uint32_t) {
        return with([&](FakeCuda& state) { return state.configured.push_back(config->device), 0; });
    };
    return made;
}

}  // namespace fake_cuda

inline FakeCuda& FakeCuda::begin() {
    FakeCuda& state = get();
    Libraries libraries;
    libraries.driver = fake_cuda::driver();
    libraries.cupti = fake_cuda::cupti();
    libraries.has_driver = libraries.has_cupti = true;
    libraries.cupti_version = 130000;
    replace_libraries(libraries);
    std::lock_guard lock(state.mutex);
    state.is_initialized = state.has_primary = true;
    state.destroyed.clear();
    state.pushed.clear();
    state.is_hung = state.is_held = state.is_subscribed = false;
    state.subscriptions = state.disabled = state.buffers_given = state.flushes = 0;
    state.refusal = kCuptiSuccess;
    state.kinds.clear();
    state.configured.clear();
    return state;
}

}  // namespace marey::cuda
