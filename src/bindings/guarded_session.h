// guarded_session.h: a session that threads of Python share.
#pragma once

#include <mutex>

#include <kymo/session.h>

namespace kymo::bindings {

/// A kymo::Session is used by one thread at a time. The GIL does not see to that: what takes long is done
/// without it.
struct GuardedSession {
    std::mutex mutex;  ///< of the session; taken without the GIL
    Session session;
};

}  // namespace kymo::bindings
