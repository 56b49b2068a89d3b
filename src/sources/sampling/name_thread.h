// name_thread.h: a thread that takes Python's GIL to name the code that samples have met.
#pragma once

#include <pthread.h>
#include <semaphore.h>

#include <atomic>
#include <cstdint>

namespace marey::sampling {

/// All but wake() are called by one thread at a time. Nobody waits long for the thread: it may wait for the
/// GIL, which whoever waits for it may hold.
class NameThread {
  public:
    /// There are places without names. Starts the thread the first time.
    void wake() noexcept;
    void stop() noexcept;
    /// Waits until all places have names, at most that long.
    void flush(std::uint64_t timeout_ns) noexcept;

  private:
    struct State {
        sem_t wake;
        std::atomic<bool> must_end{false};
    };
    static void* enter(void* state) noexcept;

    pthread_t thread_{};
    std::atomic<State*> state_{nullptr};
};

}  // namespace marey::sampling
