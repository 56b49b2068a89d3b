/* first_argument.h: the first argument of a running call, read from its frame without creating its locals. */
#ifndef MAREY_SOURCES_PYTHON_FIRST_ARGUMENT_H
#define MAREY_SOURCES_PYTHON_FIRST_ARGUMENT_H

#include <Python.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The first argument of the call that has `skip` Python calls inside it on a thread (0: the innermost), if
 * its code is `code`. Borrowed; NULL: there is none, or it no longer exists. Needs the GIL. */
PyObject* marey_first_argument(PyThreadState* thread, size_t skip, PyCodeObject* code);

/* The same for a frame of the interpreter (a _PyInterpreterFrame). */
PyObject* marey_first_argument_in(void* frame, PyCodeObject* code);

#ifdef __cplusplus
}
#endif

#endif
