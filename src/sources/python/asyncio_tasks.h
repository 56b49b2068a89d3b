// asyncio_tasks.h: which task of asyncio runs a coroutine.
#pragma once

#include <Python.h>

#include <cstdint>

namespace marey::python {

/// Tells the recorder that call number `call` is that of a task's coroutine, if it is: when the task that
/// runs on this thread is one of this coroutine. Runs no code of the program's, and keeps the error
/// indicator. Needs the GIL.
void note_task(PyObject* coroutine, std::uint64_t call) noexcept;

/// Tracing has ended: lets go of asyncio. Needs the GIL.
void forget_asyncio() noexcept;

}  // namespace marey::python
