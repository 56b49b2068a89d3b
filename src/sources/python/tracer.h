// tracer.h: records every Python call while a session requests it.
#pragma once

#include <Python.h>

#include <string_view>

#include <marey/range.h>

namespace marey::python {

/// Registers the tracer with the recorder. Called once, when the module is imported; sets no hook.
void add_tracer();

/// A session with calls is about to start. `all_c_calls`: record all C calls, even where that is expensive,
/// until the last such session ends.
void prepare_tracer(bool all_c_calls) noexcept;

/// Sets or removes hooks as the running sessions require. Needs the GIL; does nothing if nothing has changed.
/// Code that starts or ends a session with the GIL calls this right after; otherwise the interpreter does it
/// soon.
void apply_tracer() noexcept;

/// Postpones setting and removing hooks, so that Marey's own calls to start a session are not recorded.
/// Releasing needs the GIL.
void hold_tracer() noexcept;
void release_tracer() noexcept;

/// Reports problems with the hook as problems of the trace, and the calls of open ranges. Called when a
/// running session is about to be stopped or read. Needs the GIL.
void check_tracer() noexcept;

/// Why a session that starts now could not record the requested calls; null: it could.
const char* tracer_error(bool c_calls) noexcept;

/// Whether calls are recorded now. Guarded by the GIL.
[[gnu::visibility("hidden")]] extern bool is_tracing;
void prepare_thread() noexcept;

/// Called before a range is opened from Python code, with the GIL: opens the calls that were running on the
/// thread when tracing started, and ends those that have ended unseen.
inline void before_range() noexcept {
    if (is_tracing) [[unlikely]]
        prepare_thread();
}

/// Begins a step of the program: calls that cross it keep their times, and it is shortened. Requires the GIL.
Range open_step(std::string_view name) noexcept;

}  // namespace marey::python
