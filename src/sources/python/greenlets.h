// greenlets.h: separates the calls of greenlets that share a thread.
#pragma once

#include <Python.h>

#include "sources/python/shadow_stack.h"

namespace marey::python {

// All functions need the GIL.

/// `expect` is called when the library is imported; the hook then calls watch_greenlets() again on each
/// thread. Null: tracing ends. `cannot_follow`: called at a switch from a greenlet on a thread whose calls
/// are not known.
void follow_greenlets(void (*expect)() noexcept,
                      void (*cannot_follow)(PyObject* origin) noexcept = nullptr) noexcept;

/// Chains a trace callback of `greenlet`, which exists for each thread, on the calling thread with these
/// calls; null: they are on the C stack. Does nothing if the library has not been imported. False: it is
/// being imported; call this again at the thread's next event. May run Python code, which may end tracing.
bool watch_greenlets(ShadowStack* stack) noexcept;

/// These calls are about to be destroyed and must not be used any more.
void forget_greenlets(const ShadowStack& stack) noexcept;

/// Called when code in this file runs for the first time.
void note_file_for_greenlets(std::string_view file) noexcept;

}  // namespace marey::python
