// fork_mutex.h: a lock that is free in a forked child.
#pragma once

#include <cstdint>
#include <mutex>

#include <marey/detail/thread_safety.h>

namespace marey {

/// Held by the forking thread while the process forks, so that no other thread is inside the code it
/// protects. Must live as long as the process. Where two are held at once, the one that was made first is
/// taken first.
class MAREY_CAPABILITY("fork_mutex") ForkMutex {
  public:
    ForkMutex();
    ForkMutex(const ForkMutex&) = delete;
    ForkMutex& operator=(const ForkMutex&) = delete;
    void lock() MAREY_ACQUIRE() { mutex_.lock(); }
    void unlock() MAREY_RELEASE() { mutex_.unlock(); }

  private:
    std::mutex mutex_;
};

/// Incremented in every forked child: objects made under another number belong to the parent.
std::uint32_t fork_generation() noexcept;

}  // namespace marey
