// thread_safety.h: which lock guards what, in words that clang's thread safety analysis checks (make check).
#pragma once

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
/// A function that returns with the locks held, or released.
#define MAREY_ACQUIRE(...) MAREY_THREAD_SAFETY(acquire_capability(__VA_ARGS__))
#define MAREY_RELEASE(...) MAREY_THREAD_SAFETY(release_capability(__VA_ARGS__))
/// A function that is not checked; a comment says why it is right.
#define MAREY_UNCHECKED_LOCKS MAREY_THREAD_SAFETY(no_thread_safety_analysis)

namespace marey {

/// std::lock_guard for annotated locks.
template <class Mutex>
class MAREY_SCOPED_CAPABILITY ScopedLock {
  public:
    explicit ScopedLock(Mutex& mutex) MAREY_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
    ~ScopedLock() MAREY_RELEASE() { mutex_.unlock(); }
    ScopedLock(const ScopedLock&) = delete;
    ScopedLock& operator=(const ScopedLock&) = delete;

  private:
    Mutex& mutex_;
};

}  // namespace marey
