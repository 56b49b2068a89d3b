// thread_names.h: names threads as `threading` does.
#pragma once

#include <Python.h>

#include <string>

namespace marey::python {

/// Whether this is the first function of every thread that `threading` starts: its first argument is the
/// Thread.
bool is_thread_code(PyCodeObject* code) noexcept;

/// The name of a threading.Thread; empty if it has none. Runs no program code. Keeps the error indicator.
std::string name_of_thread(PyObject* thread);

/// Gives the calling thread, which must be recorded, the name of its Thread.
void name_calling_thread(PyObject* thread) noexcept;

}  // namespace marey::python
