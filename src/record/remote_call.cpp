// remote_call.cpp: the time of a call to another process.
#include <marey/range.h>
#include <marey/remote.h>

#include "record/clocks/clock.h"
#include "record/thread_log.h"
#include "record/thread_registry.h"

namespace marey {

RemoteCall::RemoteCall() noexcept {
    if (is_recording()) {
        const SlowPath path(kNoRecord);
        const detail::ThreadState* const state = path ? ready_thread() : nullptr;
        if (state != nullptr) thread_ = static_cast<const ThreadEntry*>(state->owner)->id;
    }
    start_ = Clock::now();
}

void RemoteCall::end() noexcept {
    if (end_ == 0) end_ = Clock::now();
}

}  // namespace marey
