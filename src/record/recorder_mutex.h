// recorder_mutex.h: the recorder's locks. recorder_mutex also marks its holder as inside the recorder.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <forward_list>
#include <memory>
#include <mutex>

#include <marey/detail/thread_safety.h>

#include "record/child_words.h"

namespace marey {

/// How deep the calling thread is inside the recorder: slow paths, and holders of its lock. A signal handler
/// that finds it above 0 has interrupted the recorder on its own thread; its records are dropped and counted.
extern constinit thread_local std::uint32_t inside_depth;

/// A mutex that a signal handler of its holder never waits for.
class MAREY_CAPABILITY("recorder_mutex") RecorderMutex {
  public:
    void lock() MAREY_ACQUIRE() {
        check_process();
        ++inside_depth;
        mutex_.lock();
    }
    void unlock() MAREY_RELEASE() {
        mutex_.unlock();
        --inside_depth;
    }
    /// In a child without fork handlers: takes it, unless a thread of the parent held it.
    bool take_in_child() MAREY_UNCHECKED_LOCKS {
        const bool is_taken = mutex_.try_lock();
        if (is_taken) ++inside_depth;
        return is_taken;
    }
    void free_in_child() { std::construct_at(&mutex_); }

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
    void lock() MAREY_ACQUIRE() {
        check_process();
        mutex_.lock();
    }
    void unlock() MAREY_RELEASE() { mutex_.unlock(); }
    bool take_in_child() MAREY_UNCHECKED_LOCKS { return mutex_.try_lock(); }  ///< as RecorderMutex does

  private:
    std::mutex mutex_;
};

/// Waits for changes of what recorder_mutex guards.
class RecorderCondition {
  public:
    /// `is_met` is called with the lock held.
    void wait(auto is_met) MAREY_REQUIRES(recorder_mutex) { used_.front().wait(recorder_mutex, is_met); }
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
