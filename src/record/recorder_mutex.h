// recorder_mutex.h: the recorder's lock, which also marks its holder as inside the recorder.
#pragma once

#include <cstdint>
#include <mutex>

namespace marey {

/// How deep the calling thread is inside the recorder: slow paths, and holders of its lock. A signal handler
/// that finds it above 0 has interrupted the recorder on its own thread; its records are dropped and counted.
extern constinit thread_local std::uint32_t inside_depth;

/// A mutex that a signal handler of its holder never waits for.
class RecorderMutex {
  public:
    void lock() {
        ++inside_depth;
        mutex_.lock();
    }
    void unlock() {
        mutex_.unlock();
        --inside_depth;
    }

  private:
    std::mutex mutex_;
};

}  // namespace marey
