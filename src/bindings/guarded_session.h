// guarded_session.h: a session that Python threads can share.
#pragma once

#include <nanobind/nanobind.h>

#include <marey/detail/thread_safety.h>
#include <marey/session.h>

namespace marey::bindings {

/// A marey::Session may be used by one thread at a time. The GIL does not guarantee this because long
/// operations release it.
struct GuardedSession {
    Mutex mutex;  ///< locked without the GIL
    Session session MAREY_GUARDED_BY(mutex);

    GuardedSession() = default;
    // Discarding a running session is one of the long operations.
    ~GuardedSession() {
        if (session.id() == 0) return;
        const nanobind::gil_scoped_release released;
        session.discard();
    }
};

}  // namespace marey::bindings
