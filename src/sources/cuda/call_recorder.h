// call_recorder.h: records calls into CUDA on the threads that make them.
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

/// While this object lives, calls on its thread are Marey's own and are not recorded.
class SuppressCalls {
  public:
    SuppressCalls() noexcept;
    ~SuppressCalls();
    SuppressCalls(const SuppressCalls&) = delete;
    SuppressCalls& operator=(const SuppressCalls&) = delete;
};

/// Subscribes to CUPTI callbacks for selected functions. (CUPTI can write call records itself, but then every
/// runtime call costs some 0.3 us more, including those that are not requested, and PyTorch makes several of
/// those per launch.) A nested call, such as a driver call made by the runtime, is part of the outer call.
/// One per process; it must outlive the threads that call.
class CallRecorder {
  public:
    /// Both functions are called on threads of the program: `on_full` when calls should be taken,
    /// `on_context` when the first call in a context has ended.
    CallRecorder(const Cupti& cupti, std::function<void()> on_full, std::function<void()> on_context);

    /// Subscribes. CUPTI allows one subscriber. Returns an error message; empty on success.
    std::string start();
    /// Records the calls of a domain from now until the stop. Returns CUPTI's result.
    CuptiResult trace_calls(std::uint32_t domain);
    void stop() noexcept;
    /// While stopped: whether CUPTI is free, that is, no other profiler uses it.
    bool is_cupti_free();
    /// In a forked child, where CUDA does not work.
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
    std::vector<std::uint32_t> functions_[kCallDomains];  ///< cached, to make later starts quick
    std::atomic<bool> is_on_{false};
    std::atomic<std::uint32_t> round_{0};  ///< number of starts
};

}  // namespace marey::cuda
