// sampled_threads.h: what the sampler and the signal handler share about each thread.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <marey/detail/python_stacks.h>

namespace marey::sampling {

/// A sample as the handler leaves it.
struct RawSample {
    std::uint64_t ticks;
    std::uint64_t cpu_ns;  ///< since the thread's sample before
    std::uint32_t stack;
    std::uint32_t flags;  ///< detail::SampleFlags
};

/// Room for one stack: in the thread's memory, because the program's stack may be small.
struct StackRoom {
    static constexpr std::size_t kNative = 1024;
    static constexpr std::size_t kPython = 1024;
    std::uintptr_t addresses[kNative];
    std::uintptr_t stack_pointers[kNative];
    detail::SampledFrame python[kPython];
    std::uint64_t words[kNative + kPython];

    /// Joins `native_count` addresses with the thread's Python frames. `thread`: the interpreter's state, or
    /// null; `is_own`: of the calling thread. Returns the number of the stack. Async-signal-safe.
    std::uint32_t number(std::size_t native_count, void* thread, bool is_own, std::uint32_t& flags) noexcept;
};

/// A thread that is sampled. The thread itself, in the handler, and the sampler use it; the sampler reuses it
/// once the thread has ended.
struct SampledThread {
    static constexpr std::uint32_t kSamples = 1024;

    std::atomic<pid_t> tid{0};
    std::atomic<bool> is_pending{false};        ///< a signal is under way
    std::atomic<int> clock_fd{-1};              ///< of perf_event_open
    std::atomic<std::uint64_t> sampled_cpu{0};  ///< CPU time at its last sample
    std::atomic<void*> python{nullptr};         ///< the interpreter's state, if it is known
    std::atomic<std::uint32_t> end{0};          ///< samples put by the handler,
    std::atomic<std::uint32_t> begin{0};        ///< and taken by the sampler
    std::array<RawSample, kSamples> samples;
    StackRoom room;

    // The sampler's own.
    std::uint32_t id = 0;         ///< the recorder's
    std::uint64_t clock_id = 0;   ///< of perf_event_open
    std::uint64_t seen_cpu = 0;   ///< at the last look
    std::uint64_t ran_until = 0;  ///< ticks: when it last ran, about
    double owed = 0;              ///< samples that are due
    std::uint64_t wait_from = 0;  ///< ticks; 0: no wait has been seen
    std::uint64_t part_from = 0;  ///< of the part of the wait that is not written yet
    std::uint32_t wait_stack = 0;
    std::uint32_t wait_flags = 0;
    std::uint32_t python_looks = 0;  ///< for which its wait has waited for the interpreter's state

    /// By the handler of this thread. False: there is no space.
    bool put(const RawSample& sample) noexcept {
        const std::uint32_t at = end.load(std::memory_order_relaxed);
        if (at - begin.load(std::memory_order_acquire) >= kSamples) return false;
        samples[at % kSamples] = sample;
        end.store(at + 1, std::memory_order_release);
        return true;
    }
};

/// Totals since sampling began.
struct Counts {
    std::atomic<std::uint64_t> torn{0};
    std::atomic<std::uint64_t> cut{0};
    std::atomic<std::uint64_t> lost{0};
};
Counts& counts() noexcept;

/// The thread with this id; null: it is not sampled. Lock-free, async-signal-safe.
SampledThread* find_thread(pid_t tid) noexcept;
/// By the sampler. False: there are too many.
bool publish_thread(SampledThread* thread, pid_t tid) noexcept;
void withdraw_thread(SampledThread* thread) noexcept;

/// Whether handlers take samples.
void set_handling(bool is_on) noexcept;
/// A free real-time signal, with the handler installed; 0: every one is in use.
int install_handler() noexcept;
/// Whether the program has left it so.
bool is_handler_installed(int signal) noexcept;

/// CPU time of a thread of this process. False: it has ended.
bool read_cpu(pid_t tid, std::uint64_t& ns) noexcept;

}  // namespace marey::sampling
