// recorder_mutex.h: the recorder's locks. recorder_mutex also marks its holder as inside the recorder.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <forward_list>
#include <mutex>

#include "base/thread_safety.h"

namespace marey {

/// How deep the calling thread is inside the recorder: slow paths, and holders of its lock. A signal handler
/// that finds it above 0 has interrupted the recorder on its own thread; its records are dropped and counted.
extern constinit thread_local std::uint32_t inside_depth;

/// A mutex that a signal handler of its holder never waits for.
class MAREY_CAPABILITY("recorder_mutex") RecorderMutex {
  public:
    void lock() MAREY_ACQUIRE() {
        ++inside_depth;
        mutex_.lock();
    }
    void unlock() MAREY_RELEASE() {
        mutex_.unlock();
        --inside_depth;
    }

  private:
    std::mutex mutex_;
};

/// Taken at thread start and exit, at chunk changes, at first uses of names and at session starts and stops;
/// never on the inlined path, and never while a trace is built. There is one recorder in a process, and one
/// lock, so that its parts and the blocks that they share can all name it.
extern constinit RecorderMutex recorder_mutex;

/// Serialises calls into sources, and with them starts and stops of sessions. Taken before recorder_mutex.
class MAREY_CAPABILITY("source_mutex") SourceMutex {
  public:
    void lock() MAREY_ACQUIRE() { mutex_.lock(); }
    void unlock() MAREY_RELEASE() { mutex_.unlock(); }

  private:
    std::mutex mutex_;
};

/// Waits for changes of what recorder_mutex guards.
class RecorderCondition {
  public:
    /// `is_met` is called with the lock held.
    template <class Predicate>
    void wait(Predicate is_met) MAREY_REQUIRES(recorder_mutex) {
        used_.front().wait(recorder_mutex, is_met);
    }
    /// False: nobody has notified for that long.
    bool wait_for(std::chrono::seconds timeout) MAREY_REQUIRES(recorder_mutex) {
        return used_.front().wait_for(recorder_mutex, timeout) == std::cv_status::no_timeout;
    }
    void notify() noexcept { used_.front().notify_all(); }
    /// In the child of a fork.
    void forked() MAREY_REQUIRES(recorder_mutex) { used_.emplace_front(); }

  private:
    /// The first is in use. The others are from before forks: they still count waiters that this process does
    /// not have, and one of them may have held their lock, so they are never touched again.
    std::forward_list<std::condition_variable_any> used_ = std::forward_list<std::condition_variable_any>(1);
};

}  // namespace marey
