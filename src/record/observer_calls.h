// observer_calls.h: how a callback is called: guarded, and visible to a thread that drains its observer.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>

#include "record/observer_snapshot.h"

namespace marey {

constexpr std::uint64_t kNever = ~std::uint64_t{0};

/// A well-mixed number, for draws.
std::uint64_t mixed_random(std::uint64_t value) noexcept;
/// How many ranges pass until the next hit, if each is a hit with this probability: one draw for all of them.
std::uint64_t draw_countdown(ThreadObservers& thread, double probability) noexcept;

// ---- coordination with remove_and_drain() ----
// A thread publishes which observer it is about to call, then checks whether that observer is being drained;
// the drainer marks the observer, then checks what the threads have published. Each needs its store to be
// visible before its check. The drainer pays for both with a barrier on all processors (membarrier); where
// that does not exist, each call pays.

#if defined(__SANITIZE_THREAD__)
constexpr std::memory_order kStoreOrder = std::memory_order_seq_cst;
constexpr std::memory_order kLoadOrder = std::memory_order_seq_cst;
constexpr bool kFences = false;
#else
constexpr std::memory_order kStoreOrder = std::memory_order_relaxed;
constexpr std::memory_order kLoadOrder = std::memory_order_relaxed;
constexpr bool kFences = true;
#endif

/// There is no membarrier. Set before the first observer is added.
extern std::atomic<bool> caller_fences;

inline void fence_of_caller() noexcept {
    if constexpr (kFences) {
        if (caller_fences.load(std::memory_order_relaxed)) {
            std::atomic_thread_fence(std::memory_order_seq_cst);
        } else {
            std::atomic_signal_fence(std::memory_order_seq_cst);
        }
    }
}

/// Reports the first exception of a callback.
[[gnu::cold]] void report_exception(ObserverEntry& entry, const char* what) noexcept;

template <class Call>
[[gnu::always_inline]] inline void call_guarded(ObserverEntry& entry, Call call) noexcept {
    try {
        call();
    } catch (const std::exception& error) {
        report_exception(entry, error.what());
    } catch (...) {
        report_exception(entry, "an object that is not a std::exception");
    }
}

/// Calls it unless it is being drained, and makes the call visible to a drainer. A thread publishes one
/// observer at a time: calls made while one runs (a callback, or a signal handler, ends an observed range)
/// are counted at their observer.
template <class Call>
[[gnu::always_inline]] inline void call_observer(ThreadObservers* thread, ObserverEntry& entry,
                                                 Call call) noexcept {
    if (thread == nullptr || thread->executing.load(std::memory_order_relaxed) != nullptr) [[unlikely]] {
        entry.running_elsewhere.fetch_add(1, std::memory_order_seq_cst);
        if (!entry.is_drained.load(std::memory_order_seq_cst)) call_guarded(entry, call);
        entry.running_elsewhere.fetch_sub(1, std::memory_order_seq_cst);
        return;
    }
    thread->executing.store(&entry, kStoreOrder);
    fence_of_caller();
    if (!entry.is_drained.load(kLoadOrder)) call_guarded(entry, call);
    thread->executing.store(nullptr, std::memory_order_release);
}

/// ThreadObservers::inside for a thread that has no part yet, or no longer has one, and ends another thread's
/// range.
extern constinit thread_local std::uint32_t inside_without_part __attribute__((tls_model("initial-exec")));

/// Marks the thread as calling, so that ranges opened by a callback or a signal handler are not observed.
class CallbackScope {
  public:
    explicit CallbackScope(ThreadObservers* thread) noexcept
        : inside_(thread != nullptr ? thread->inside : inside_without_part) {
        ++inside_;
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    ~CallbackScope() {
        std::atomic_signal_fence(std::memory_order_seq_cst);
        --inside_;
    }
    CallbackScope(const CallbackScope&) = delete;
    CallbackScope& operator=(const CallbackScope&) = delete;

  private:
    std::uint32_t& inside_;
};

inline ThreadObservers* part_of(const detail::ThreadState& state) noexcept {
    return static_cast<ThreadObservers*>(state.observers);
}

}  // namespace marey
