// profile_hook.h: records Python and C calls with the C profile hook: Python 3.11 with C calls, or after they
// have been recorded.
#pragma once

#include <Python.h>

namespace marey::python {

/// Both need the GIL. Open calls of the frame hook, which is removed, stay open. False: some thread has
/// another profile hook, which is kept.
bool start_profile_hook(bool c_calls) noexcept;
void stop_profile_hook() noexcept;
/// Applies a changed filter or other kinds of calls: open calls stay open, unless they are calls into C that
/// are not recorded any more.
void change_profile_hook(bool c_calls) noexcept;
/// Removes the hook while sessions run: open calls end now, unfinished.
void pause_profile_hook() noexcept;
/// Whether our hook is still set on all threads. Needs the GIL.
bool is_profile_hook_intact() noexcept;
/// The calling thread is about to open a range: opens its earlier calls.
void prepare_profile_thread() noexcept;

}  // namespace marey::python
