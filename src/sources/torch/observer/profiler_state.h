// profiler_state.h: Marey's state in PyTorch's thread-local data: it receives allocation reports, and carries
// a context to wherever the thread's work runs.
#pragma once

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/profiler/orchestration/observer.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include <marey/context.h>
#include <marey/detail/thread_safety.h>
#include <marey/memory.h>
#include <marey/observe.h>

#include "input_values.h"

namespace marey::torch {

namespace profiler = ::torch::profiler::impl;

/// PyTorch expects a ProfilerStateBase in that place, and treats one of the kind KINETO as its own. So this
/// has a kind that counts as profiling, and that PyTorch's profilers do not take over when they stop.
class CarriedState final : public profiler::ProfilerStateBase {
  public:
    /// The number of live states that carry a context, because a session follows tasks.
    static inline std::atomic<std::uint32_t> carriers{0};

    CarriedState(Context context, bool shapes)
        : ProfilerStateBase(profiler::ProfilerConfig(profiler::ProfilerState::CPU, shapes)),
          context_(std::move(context)) {
        if (!context_.is_empty()) carriers.fetch_add(1);
    }

    const Context& context() const noexcept { return context_; }
    /// Called when its session has ended: PyTorch no longer treats this thread as profiled.
    void retire() noexcept {
        config_.state = profiler::ProfilerState::Disabled;
        if (!is_retired_.exchange(true) && !context_.is_empty()) carriers.fetch_sub(1);
    }
    bool is_retired() const noexcept { return is_retired_.load(std::memory_order_relaxed); }

    profiler::ActiveProfilerType profilerType() override { return profiler::ActiveProfilerType::KINETO; }
    bool memoryProfilingEnabled() const override {
        if (is_recording_memory()) return true;
        if (context_.is_empty() || is_retired()) return false;
        const ContextAdoption adoption(context_);
        return is_recording_memory();
    }
    void reportMemoryUsage(void* address, std::int64_t bytes, std::size_t allocated, std::size_t reserved,
                           c10::Device device) override {
        report([&] {
            report_allocation(address, bytes, static_cast<std::int64_t>(allocated),
                              static_cast<std::int64_t>(reserved), device_of(device));
        });
    }
    void reportOutOfMemory(std::int64_t bytes, std::size_t allocated, std::size_t reserved,
                           c10::Device device) override {
        report([&] {
            report_out_of_memory(bytes, static_cast<std::int64_t>(allocated),
                                 static_cast<std::int64_t>(reserved), device_of(device));
        });
    }

  private:
    template <class Report>
    void report(const Report& write) const noexcept {
        if (context_.is_empty() || is_recording_memory()) return write();
        const ContextAdoption adoption(context_);
        write();
    }

    Context context_;
    std::atomic<bool> is_retired_{false};
};

/// The profiler state of the calling thread.
inline c10::DebugInfoBase* present_state() noexcept {
    return c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PROFILER_STATE);
}

/// The same, if it is Marey's; otherwise null.
inline CarriedState* current_state() noexcept {
    return dynamic_cast<CarriedState*>(present_state());
}

/// Threads with another profiler's state, so that their allocations are not recorded.
class UnobservedThreads {
  public:
    static UnobservedThreads& get() noexcept {
        static auto* const threads = new UnobservedThreads;
        return *threads;
    }
    void add() noexcept {
        const std::uint32_t id = current_thread_id();
        const ScopedLock lock(mutex_);
        if (std::find(known_.begin(), known_.end(), id) != known_.end()) return;
        known_.push_back(id);
    }
    bool next(char* name, std::uint32_t bytes) noexcept {
        const ScopedLock lock(mutex_);
        if (reported_ == known_.size()) {
            known_.clear();
            reported_ = 0;
            return false;
        }
        std::snprintf(name, bytes, "%u", known_[reported_++]);
        return true;
    }

  private:
    Mutex mutex_;
    std::vector<std::uint32_t> known_ MAREY_GUARDED_BY(mutex_);
    std::size_t reported_ MAREY_GUARDED_BY(mutex_) = 0;
};

/// The state of threads that only report their allocations, while a session records them.
class SharedState {
  public:
    static std::shared_ptr<CarriedState> get() {
        const ScopedLock lock(mutex());
        if (place() == nullptr) place() = std::make_shared<CarriedState>(Context(), false);
        return place();
    }
    static void retire() noexcept {
        const ScopedLock lock(mutex());
        if (place() != nullptr) place()->retire();
        place() = nullptr;
    }

  private:
    static Mutex& mutex() noexcept {
        static auto* const made = new Mutex;
        return *made;
    }
    static std::shared_ptr<CarriedState>& place() noexcept MAREY_REQUIRES(mutex()) {
        static auto* const made = new std::shared_ptr<CarriedState>;
        return *made;
    }
};

/// Records the allocations of the calling thread from now on. Called at every operator, because a PyTorch
/// guard removes a state that was set within it.
inline void watch_allocations() {
    static thread_local const c10::DebugInfoBase* known = nullptr;  // the state at the last call
    const c10::DebugInfoBase* const present = present_state();
    if (present != nullptr && present == known) [[likely]]
        return;
    if (present == nullptr) {
        c10::ThreadLocalDebugInfo::_push(c10::DebugInfoKind::PROFILER_STATE, SharedState::get());
    } else if (dynamic_cast<const CarriedState*>(present) == nullptr) {
        UnobservedThreads::get().add();
    }
    known = present_state();
}

/// Sets a state that carries the calling thread's context. Null: another profiler's state is set.
inline std::shared_ptr<CarriedState> enter_state(bool shapes) {
    if (present_state() != nullptr && current_state() == nullptr) {
        UnobservedThreads::get().add();
        return nullptr;
    }
    auto state = std::make_shared<CarriedState>(Context::current(), shapes);
    c10::ThreadLocalDebugInfo::_push(c10::DebugInfoKind::PROFILER_STATE, state);
    return state;
}

/// Removes retired states, as far as no other state is above them.
inline void leave_states() {
    try {
        for (;;) {
            const auto top = c10::ThreadLocalDebugInfo::_peek(c10::DebugInfoKind::PROFILER_STATE);
            const auto* const own = dynamic_cast<const CarriedState*>(top.get());
            if (own == nullptr || !own->is_retired()) return;
            c10::ThreadLocalDebugInfo::_pop(c10::DebugInfoKind::PROFILER_STATE);
        }
    } catch (const std::exception&) {  // another state, or none, is on top
    }
}

}  // namespace marey::torch
