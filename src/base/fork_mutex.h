// fork_mutex.h: a lock that a forked child finds free.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace marey {

/// Held by the forking thread while the process forks, so that no other thread is inside what it protects.
/// Must live as long as the process. Where two are held at once, the one that was made first is taken first.
class ForkMutex {
  public:
    ForkMutex();
    ForkMutex(const ForkMutex&) = delete;
    ForkMutex& operator=(const ForkMutex&) = delete;
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }

  private:
    std::mutex mutex_;
};

/// Counts up in every forked child: what was made under another number is the parent's.
std::uint32_t fork_generation() noexcept;

}  // namespace marey
