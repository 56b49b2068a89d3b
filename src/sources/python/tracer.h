// tracer.h: recording every Python call while some session asks for it.
#pragma once

#include <Python.h>

namespace marey::python {

/// Makes the tracer known to the recorder. Once, when the module is imported; nothing is hooked by it.
void add_tracer();

/// A session with calls is about to start here. `all_c_calls`: where it is dear, too, until the last such
/// session ends.
void prepare_tracer(bool all_c_calls) noexcept;

/// Hooks or unhooks as the running sessions ask for. Needs the GIL; harmless when nothing has changed.
/// Whoever starts or ends a session with the GIL at hand calls this right after; for others the interpreter
/// does it soon.
void apply_tracer() noexcept;

/// Puts hooking and unhooking off for a while, and does it then: what Marey does to start a session is no
/// part of the program. Releasing needs the GIL.
void hold_tracer() noexcept;
void release_tracer() noexcept;

/// A session that runs is about to be stopped or looked at: says what is wrong with the hook as a problem of
/// its trace, and of which calls the open ranges are parts. Needs the GIL.
void check_tracer() noexcept;

/// Why a session that starts now would not get what it asks for; null: it would.
const char* tracer_error(bool c_calls) noexcept;

/// Whether calls are recorded now. Guarded by the GIL.
[[gnu::visibility("hidden")]] extern bool is_tracing;
void prepare_thread() noexcept;

/// To be called by what opens a range from Python code, with the GIL held: calls that the thread was in when
/// tracing began are opened first, and those that have ended unseen end first.
inline void before_range() noexcept {
    if (is_tracing) [[unlikely]]
        prepare_thread();
}

}  // namespace marey::python
