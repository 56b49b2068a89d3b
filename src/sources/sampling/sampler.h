// sampler.h: the thread that looks at all threads of the process: signals those that run, records those that
// wait, and moves their samples into the log.
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include <marey/detail/log_format.h>

#include "record/recorder.h"
#include "sources/sampling/name_thread.h"
#include "sources/sampling/sampled_threads.h"

namespace marey::sampling {

/// Made once. start(), stop() and flush() are called by one thread at a time.
class Sampler {
  public:
    /// False: this process cannot be sampled, for the reason in `problem`.
    bool start(std::uint32_t rate, NameThread& names, const char*& problem) noexcept;
    /// Everything that was sampled is in the log then.
    void stop() noexcept;
    bool runs() const noexcept { return runs_; }
    void flush(std::uint64_t timeout_ns) noexcept;
    /// In the child of a fork, which does not have the thread.
    void forked() noexcept;

  private:
    struct Look {
        std::uint64_t ticks;
        std::uint64_t elapsed_ticks;
    };

    static void* enter(void* sampler) noexcept;
    void run() noexcept;
    bool pause() noexcept;
    void look();
    void list_threads();
    void add_thread(pid_t tid, bool is_new);
    void remove_thread(std::size_t at) noexcept;
    void look_at(SampledThread& thread, std::uint64_t cpu, const Look& now) noexcept;
    void see_wait(SampledThread& thread, std::uint64_t cpu, const Look& now) noexcept;
    void end_wait(SampledThread& thread, std::uint64_t ticks) noexcept;
    void take_samples(SampledThread& thread) noexcept;
    bool put(std::uint32_t thread, std::uint64_t end, std::uint32_t stack, std::uint64_t weight,
             std::uint32_t flags) noexcept;
    void note_modules();
    void write_facts() noexcept;
    std::uint64_t ticks_of(std::uint64_t ns) const noexcept {
        return static_cast<std::uint64_t>(static_cast<double>(ns) * ticks_per_ns_);
    }

    ThreadEntry* log_ = nullptr;
    NameThread* names_ = nullptr;
    pthread_t thread_{};
    bool runs_ = false;
    sem_t wake_{};
    std::atomic<bool> must_end_{false};
    std::atomic<std::uint32_t> flushes_wanted_{0};
    std::atomic<std::uint32_t> flushes_done_{0};

    // The sampler thread's own.
    std::uint32_t rate_ = 0;
    int signal_ = 0;
    bool has_clocks_ = false;  ///< perf_event_open is allowed
    double ticks_per_ns_ = 1;
    std::uint64_t last_look_ = 0;
    std::uint64_t looks_ = 0;
    std::uint64_t listed_threads_ = 0;
    std::uint32_t random_ = 1;
    std::vector<SampledThread*> threads_;
    std::vector<SampledThread*> spare_;
    std::set<std::pair<std::uintptr_t, std::string>> known_modules_;
    const void* modules_ = nullptr;
    std::byte* last_chunk_ = nullptr;
    std::uint32_t last_thread_ = 0;
    std::uint64_t facts_written_ = ~std::uint64_t{0};
    std::vector<std::byte> stack_copy_;
};

}  // namespace marey::sampling
