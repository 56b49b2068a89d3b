// asyncio_tasks.h: finds the asyncio task that runs a coroutine.
#pragma once

#include <Python.h>

#include <cstdint>

namespace marey::python {

/// Reports to the recorder that call number `call` is a task's coroutine, if the task running on this thread
/// runs this coroutine. Runs no program code and keeps the error indicator. Needs the GIL.
void note_task(PyObject* coroutine, std::uint64_t call) noexcept;

/// Returns the program's coroutine for that of a task, borrowed: others may have wrapped it. Set before a
/// session starts; null: it is the same one.
inline PyObject* (*coroutine_of_task)(PyObject* coroutine) noexcept = nullptr;

/// Releases asyncio when tracing has ended. Needs the GIL.
void forget_asyncio() noexcept;

}  // namespace marey::python
