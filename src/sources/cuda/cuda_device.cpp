// cuda_device.cpp: NVIDIA GPUs as a Marey device.
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include <marey/detail/thread_safety.h>
#include <marey/device.h>
#include <marey/emit.h>
#include <marey/error.h>

#include "sources/cuda/call_recorder.h"
#include "sources/cuda/cuda_contexts.h"
#include "sources/cuda/cuda_libraries.h"
#include "sources/cuda/cupti_source.h"

namespace marey::cuda {
namespace {

void check(CudaResult result, const char* what) {
    if (result != kCudaSuccess) throw Error(std::string(what) + ": " + cuda_error(result));
}

/// Unused events, by the id of their context: creating an event costs more than recording it.
class EventPool {
  public:
    void* take(std::uint64_t context) {
        {
            const ScopedLock lock(mutex_);
            std::vector<void*>& free = free_[context];
            if (!free.empty()) {
                void* const event = free.back();
                free.pop_back();
                return event;
            }
        }
        void* event = nullptr;
        check(libraries().driver.event_create(&event, 0), "cuEventCreate");
        return event;
    }
    void recycle(std::uint64_t context, void* event) noexcept {
        const ScopedLock lock(mutex_);
        free_[context].push_back(event);
    }

  private:
    Mutex mutex_;
    std::unordered_map<std::uint64_t, std::vector<void*>> free_ MAREY_GUARDED_BY(mutex_);
};

EventPool& events() {
    static auto& pool = *new EventPool;
    return pool;
}

class CudaEvent final : public DeviceEvent {
  public:
    CudaEvent(void* context, std::int32_t device)
        : context_(context),
          context_id_(context_id(context)),
          event_(events().take(context_id_)),
          device_(device) {}
    ~CudaEvent() override { events().recycle(context_id_, event_); }
    CudaEvent(const CudaEvent&) = delete;
    CudaEvent& operator=(const CudaEvent&) = delete;
    std::int32_t device() const noexcept override { return device_; }
    void* event() const noexcept { return event_; }
    /// Whether its context has ended, and the event with it.
    bool is_gone() const noexcept { return context_id(context_) != context_id_; }

  private:
    void* context_;
    std::uint64_t context_id_;
    void* event_;
    std::int32_t device_;
};

class CudaDevice final : public DeviceRuntime {
  public:
    std::string name() const override { return "cuda"; }
    DeviceType type() const noexcept override { return DeviceType::Cuda; }
    std::string unavailable() const override { return libraries().trouble; }

    std::unique_ptr<DeviceEvent> record() override {
        const SuppressCalls ours;
        const Driver& driver = usable_driver();
        void* context = nullptr;
        // A thread may call this before CUDA is initialised.
        if (driver.context_current(&context) != kCudaSuccess) return nullptr;
        if (context == nullptr) return nullptr;
        int device = 0;
        check(driver.context_device(&device), "cuCtxGetDevice");
        auto event = std::make_unique<CudaEvent>(context, device);
        check(driver.event_record(event->event(), current_queue(DeviceType::Cuda)), "cuEventRecord");
        return event;
    }

    double elapsed_us(const DeviceEvent& from, const DeviceEvent& to) override {
        const auto* const first = dynamic_cast<const CudaEvent*>(&from);
        const auto* const last = dynamic_cast<const CudaEvent*>(&to);
        if (first == nullptr || last == nullptr) throw Error("Events were not recorded for CUDA");
        if (from.device() != to.device()) {
            throw Error("Events are not on the same device: " + std::to_string(from.device()) + " vs " +
                        std::to_string(to.device()));
        }
        if (first->is_gone() || last->is_gone()) throw Error("the context of an event has been destroyed");
        const SuppressCalls ours;
        const Driver& driver = usable_driver();
        const RelaxedCaptureMode outside(driver);
        check(driver.event_synchronize(first->event()), "cuEventSynchronize");
        check(driver.event_synchronize(last->event()), "cuEventSynchronize");
        float milliseconds = 0;
        check(driver.event_elapsed(&milliseconds, first->event(), last->event()), "cuEventElapsedTime");
        return static_cast<double>(milliseconds) * 1000;
    }

    std::optional<bool> has_reached(const DeviceEvent& point) override {
        const auto* const event = dynamic_cast<const CudaEvent*>(&point);
        if (event == nullptr) return std::nullopt;
        if (event->is_gone()) return true;  // there is nothing to wait for
        const RelaxedCaptureMode outside(usable_driver());
        return usable_driver().event_query(event->event()) != kCudaNotReady;
    }

    void mark(std::string_view name) override { nvtx::mark(name); }
    void range_push(std::string_view name) override { nvtx::range_push(name); }
    void range_pop() override { nvtx::range_pop(); }

    void on_each_device(const std::function<void(std::int32_t device)>& visit) override {
        std::set<int> visited;
        for_each_context([&](int device, void* context) {
            const CurrentContext current(libraries().driver, context);
            if (current && visited.insert(device).second) visit(device);
        });
    }

    void synchronize() override {
        const SuppressCalls ours;
        if (const std::string trouble = synchronize_contexts(); !trouble.empty())
            throw Error("waiting for the GPU failed: " + trouble);
    }

    void begins() noexcept override { source().begins(); }

    DeviceActivitySource* activities() override { return will_begin() || find_cupti() ? &source() : nullptr; }

    std::string activities_error() const override {
        find_cupti();
        return libraries().cupti_trouble;
    }

    std::vector<std::pair<std::string, std::string>> details() const override {
        if (!find_cupti()) return {};
        return {{"CUPTI", "API version " + std::to_string(libraries().cupti_version) + " (" +
                              libraries().cupti_path + ")"}};
    }

  private:
    static CuptiSource& source() {
        static auto& made = *new CuptiSource;
        return made;
    }

    const Driver& usable_driver() const {
        if (!libraries().trouble.empty()) throw Error(libraries().trouble);
        return libraries().driver;
    }
};

}  // namespace
}  // namespace marey::cuda

extern "C" {

MAREY_API void marey_register_device() {
    marey::register_device(std::make_shared<marey::cuda::CudaDevice>());
}
}
