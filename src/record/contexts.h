// contexts.h: the parts of a context: shared slots, and the sessions that follow tasks.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include <marey/detail/context_node.h>
#include <marey/detail/thread_safety.h>
#include <marey/detail/thread_state.h>
#include <marey/session.h>

namespace marey {

/// A session of one thread and its tasks, as contexts refer to it. Outlives the session.
struct TaskSession {
    std::uint64_t session = 0;
    std::uint64_t armed = 0;             ///< bits of ThreadState::armed that it needs
    std::atomic<bool> is_closed{false};  ///< set once, with the recorder's lock held
};

/// The sessions of a context: an immutable set with an id that marks in logs refer to. Readable from any
/// thread.
struct ContextSessions : std::enable_shared_from_this<ContextSessions> {
    std::uint64_t id = 0;
    std::vector<std::shared_ptr<const TaskSession>> members;  ///< at least one; the newest is the last
    /// The set without the newest member, as it was when that one started.
    std::shared_ptr<const ContextSessions> outer;

    std::uint64_t armed() const noexcept;  ///< the bits that the living members need
    bool holds(const TaskSession& session) const noexcept;
};
/// Steps out of sets whose newest members have closed: returns the oldest set with the same living sessions.
/// Null when none is alive.
const ContextSessions* settled(const ContextSessions* sessions) noexcept;

/// The bits of ThreadState::armed that a session needs.
std::uint64_t armed_bits(const SessionOptions& options) noexcept;

/// Guards one thread's armed word against concurrent writes by its owner and the recorder. Held for a few
/// instructions, never while another lock is taken.
class MAREY_CAPABILITY("arming") ArmingLock {
  public:
    void lock() noexcept MAREY_ACQUIRE() {
        while (flag_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
    }
    void unlock() noexcept MAREY_RELEASE() { flag_.clear(std::memory_order_release); }

  private:
    std::atomic_flag flag_{};
};

/// Puts the calling thread under a set of sessions (null: none), with a mark in its log if anything records.
/// The set must live until the thread is put under another one. Takes no lock that threads share, except for
/// a thread's first registration. Does nothing in a signal handler that interrupted the recorder.
void enter_sessions(const ContextSessions* sessions) noexcept;
/// The calling thread's set, without closed sessions; null: none.
const ContextSessions* current_sessions() noexcept;

/// The interface for observers and the per-thread switch: reads the calling thread's state, and applies the
/// state that a context carries. apply_extras runs at every adoption: it must not write anything that threads
/// share.
detail::ThreadExtras capture_extras() noexcept;
void apply_extras(const detail::ThreadExtras& extras) noexcept;

namespace detail {
inline namespace layout1 {

struct SharedSlot : ContextNode {
    std::shared_ptr<const void> owner;  ///< of `value`
    std::shared_ptr<SharedSlot> rest;   ///< `next`

    SharedSlot() = default;
    SharedSlot(const SharedSlot&) = delete;
    SharedSlot& operator=(const SharedSlot&) = delete;
    ~SharedSlot();  ///< frees a long list without recursion
};

struct ContextData {
    std::shared_ptr<SharedSlot> slots;
    std::shared_ptr<const ContextSessions> sessions;
    ThreadExtras extras;
};

}  // namespace layout1
}  // namespace detail

}  // namespace marey
