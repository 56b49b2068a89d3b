// greenlets.h: keeps the calls of greenlets apart: each has its own, on the thread that they share.
#pragma once

#include <Python.h>

#include "sources/python/filtered_stack.h"
#include "sources/python/shadow_stack.h"

namespace marey::python {

/// All need the GIL.

/// What a hook does when the library comes: to call watch_greenlets() again on each thread. Null: tracing
/// ends. `cannot_follow`: called at a switch from a greenlet on a thread whose calls are not known.
void follow_greenlets(void (*expect)() noexcept,
                      void (*cannot_follow)(PyObject* origin) noexcept = nullptr) noexcept;

/// Chains onto the trace callback of `greenlet`, which is each thread's own, for the calling thread, whose
/// calls are these; null: they are on the C stack. Nothing is done where the library has not been imported.
/// False: it is being imported; to be called again at the thread's next event. May run Python code, which may
/// end tracing.
bool watch_greenlets(ShadowStack* stack, FilteredStack* filtered) noexcept;

/// These calls go: they are not to be touched any more.
void forget_greenlets(const ShadowStack& stack) noexcept;

/// Code of this file runs for the first time.
void note_file_for_greenlets(std::string_view file) noexcept;

}  // namespace marey::python
