// guarded_session.h: a session that threads of Python share.
#pragma once

#include <nanobind/nanobind.h>

#include <mutex>

#include <marey/session.h>

namespace marey::bindings {

/// A marey::Session is used by one thread at a time. The GIL does not see to that: what takes long is done
/// without it.
struct GuardedSession {
    std::mutex mutex;  ///< of the session; taken without the GIL
    Session session;

    GuardedSession() = default;
    GuardedSession(const GuardedSession&) = delete;
    GuardedSession& operator=(const GuardedSession&) = delete;
    // A device that is written in Python has its last word when a session that runs is dropped.
    ~GuardedSession() {
        if (session.id() == 0) return;
        const nanobind::gil_scoped_release released;
        session.discard();
    }
};

}  // namespace marey::bindings
