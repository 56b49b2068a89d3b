// profile_hook.h: Python and C calls through the C profile hook: Python 3.11 with C calls, and where those
// have been recorded.
#pragma once

#include <Python.h>

namespace marey::python {

/// Both need the GIL. Calls that the frame hook has open stay so: it is out then. False: some thread has
/// somebody else's profile hook, which stays.
bool start_profile_hook(bool c_calls) noexcept;
void stop_profile_hook() noexcept;
/// The filter is another one, or the kinds of calls are: calls that are open stay so, unless they are into C
/// and such are not recorded any more.
void change_profile_hook(bool c_calls) noexcept;
/// Takes the hook out though sessions run: calls that are open end now, unfinished.
void pause_profile_hook() noexcept;
/// Whether no thread has somebody else's hook or none, in place of ours. Needs the GIL.
bool is_profile_hook_intact() noexcept;
/// The calling thread is about to open a range: its calls from before are opened.
void prepare_profile_thread() noexcept;

}  // namespace marey::python
