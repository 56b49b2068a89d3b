// thread_safety.h: locks, and which lock guards what, in words that clang's thread safety analysis checks
// (make check).
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define MAREY_THREAD_SAFETY(attribute) __attribute__((attribute))
#else
#define MAREY_THREAD_SAFETY(attribute)
#endif

/// A type that is a lock, and a type that holds one for its lifetime.
#define MAREY_CAPABILITY(name) MAREY_THREAD_SAFETY(capability(name))
#define MAREY_SCOPED_CAPABILITY MAREY_THREAD_SAFETY(scoped_lockable)
/// A member that is only read and written while `lock` is held.
#define MAREY_GUARDED_BY(lock) MAREY_THREAD_SAFETY(guarded_by(lock))
/// A function whose caller holds the locks, or must not hold them because the function takes them.
#define MAREY_REQUIRES(...) MAREY_THREAD_SAFETY(requires_capability(__VA_ARGS__))
#define MAREY_EXCLUDES(...) MAREY_THREAD_SAFETY(locks_excluded(__VA_ARGS__))
/// A function that returns with the locks held, or released, or held if it returns true.
#define MAREY_ACQUIRE(...) MAREY_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define MAREY_RELEASE(...) MAREY_THREAD_SAFETY(release_capability(__VA_ARGS__))
#define MAREY_TRY_ACQUIRE MAREY_THREAD_SAFETY(try_acquire_capability(true))
/// A function that is not checked; a comment says why it is right.
#define MAREY_UNCHECKED_LOCKS MAREY_THREAD_SAFETY(no_thread_safety_analysis)

namespace marey {

/// std::mutex for the analysis.
class MAREY_CAPABILITY("mutex") Mutex {
  public:
    constexpr Mutex() noexcept = default;
    void lock() MAREY_ACQUIRE() { mutex_.lock(); }
    void unlock() MAREY_RELEASE() { mutex_.unlock(); }
    bool try_lock() MAREY_TRY_ACQUIRE { return mutex_.try_lock(); }

  private:
    friend class Condition;
    std::mutex mutex_;
};

/// Holds a lock for its lifetime.
template <class Lock>
class MAREY_SCOPED_CAPABILITY ScopedLock {
  public:
    explicit ScopedLock(Lock& lock) MAREY_ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
    /// Releases what try_lock() has taken.
    ScopedLock(Lock& lock, std::adopt_lock_t) MAREY_REQUIRES(lock) : lock_(lock) {}
    ~ScopedLock() MAREY_RELEASE() { lock_.unlock(); }
    ScopedLock(const ScopedLock&) = delete;
    ScopedLock& operator=(const ScopedLock&) = delete;

  private:
    Lock& lock_;
};

/// Releases a lock for its lifetime.
template <class Lock>
class MAREY_SCOPED_CAPABILITY ScopedUnlock {
  public:
    explicit ScopedUnlock(Lock& lock) MAREY_RELEASE(lock) : lock_(lock) { lock_.unlock(); }
    ~ScopedUnlock() MAREY_RELEASE() { lock_.lock(); }  // so that the analysis understands it
    ScopedUnlock(const ScopedUnlock&) = delete;
    ScopedUnlock& operator=(const ScopedUnlock&) = delete;

  private:
    Lock& lock_;
};

/// std::condition_variable for Mutex. Waits end without a reason too: check the condition in a loop.
class Condition {
  public:
    void wait(Mutex& mutex) MAREY_REQUIRES(mutex) {
        Adopted lock(mutex.mutex_);
        changed_.wait(lock);
    }
    /// False: the time was over.
    template <class Time>
    bool wait_until(Mutex& mutex, Time time) MAREY_REQUIRES(mutex) {
        Adopted lock(mutex.mutex_);
        return changed_.wait_until(lock, time) == std::cv_status::no_timeout;
    }
    void notify_one() noexcept { changed_.notify_one(); }
    void notify_all() noexcept { changed_.notify_all(); }

  private:
    /// Leaves the lock to its holder.
    struct Adopted : std::unique_lock<std::mutex> {
        explicit Adopted(std::mutex& mutex) : std::unique_lock<std::mutex>(mutex, std::adopt_lock) {}
        ~Adopted() { release(); }
    };
    std::condition_variable changed_;
};

}  // namespace marey
