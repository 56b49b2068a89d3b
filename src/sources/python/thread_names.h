// thread_names.h: threads are called what `threading` calls them.
#pragma once

#include <Python.h>

#include <string>

namespace marey::python {

/// Whether this is the first function of every thread that `threading` makes: its first argument is the
/// Thread.
bool is_thread_code(PyCodeObject* code) noexcept;

/// The name of a threading.Thread; empty: it has none. No code of the program runs. Leaves the error
/// indicator.
std::string name_of_thread(PyObject* thread);

/// Calls the calling thread, which is one that records, by the name of its Thread.
void name_calling_thread(PyObject* thread) noexcept;

}  // namespace marey::python
