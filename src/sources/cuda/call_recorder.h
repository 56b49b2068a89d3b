// call_recorder.h: calls into CUDA, taken down on the threads that make them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sources/cuda/call_log.h"
#include "sources/cuda/cuda_libraries.h"

namespace marey::cuda {

/// While it lives, calls of its thread are ours and not told.
class SuppressCalls {
  public:
    SuppressCalls() noexcept;
    ~SuppressCalls();
    SuppressCalls(const SuppressCalls&) = delete;
    SuppressCalls& operator=(const SuppressCalls&) = delete;
};

/// Subscribes to CUPTI and is called back by the functions that were chosen. (CUPTI would write records of
/// calls by itself, but then every call of CUDA's runtime pays some 0.3 us, those too that are not asked
/// for; and PyTorch makes several of those for a launch.) A call out of a call, as the runtime makes them
/// into the driver, is part of that. One of a process; it must outlive the threads that call.
class CallRecorder {
  public:
    /// Called on threads of the program: `on_full` where calls should be taken, `on_context` where the first
    /// call in a context has ended.
    CallRecorder(const Cupti& cupti, std::function<void()> on_full, std::function<void()> on_context);

    /// Subscribes. CUPTI serves one: what keeps it from serving this one, in words; empty: it does.
    std::string start();
    /// Calls of a domain are told from now on, until the stop. What CUPTI says to that.
    CuptiResult tell(std::uint32_t domain);
    void stop() noexcept;
    /// While it is stopped: whether another profiler has CUPTI.
    bool is_cupti_free();
    /// In the child of a fork, where CUDA does not work.
    void forked() noexcept { is_on_.store(false); }
    bool has_full() const noexcept { return log_.has_closed(); }
    std::uint64_t take_lost() noexcept { return log_.take_lost(); }
    template <class Visit>
    void take(Visit&& visit) {
        log_.take(std::forward<Visit>(visit));
    }

  private:
    struct PerThread;
    std::string subscribe();
    void unsubscribe() noexcept;
    static void called(void* self, std::uint32_t domain, std::uint32_t callback, const void* data);
    void record_call(std::uint32_t domain, std::uint32_t callback, const CallbackData& data) noexcept;
    static PerThread* this_thread(CallRecorder& recorder) noexcept;
    void note(PerThread& thread, void* context) noexcept;
    std::vector<std::uint32_t> traced_functions(std::uint32_t domain) const;

    const Cupti& cupti_;
    std::function<void()> on_full_;
    std::function<void()> on_context_;
    CallLog log_;
    void* subscriber_ = nullptr;
    bool is_traced_[kCallDomains] = {};
    std::vector<std::uint32_t> functions_[kCallDomains];  ///< once they are known: a start is quick
    std::atomic<bool> is_on_{false};
    std::atomic<std::uint32_t> round_{0};  ///< of starts
};

}  // namespace marey::cuda
