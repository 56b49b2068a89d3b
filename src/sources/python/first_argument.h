/* first_argument.h: the first argument of a running call, read from its frame: no locals are materialised. */
#ifndef MAREY_SOURCES_PYTHON_FIRST_ARGUMENT_H
#define MAREY_SOURCES_PYTHON_FIRST_ARGUMENT_H

#include <Python.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of the call that has `skip` calls of Python functions inside it on a thread (0: the innermost), when its
 * code is `code`. Borrowed; NULL: there is none, or it is gone. Needs the GIL. */
PyObject* marey_first_argument(PyThreadState* thread, size_t skip, PyCodeObject* code);

/* Of a frame of the interpreter (a _PyInterpreterFrame). */
PyObject* marey_first_argument_in(void* frame, PyCodeObject* code);

#ifdef __cplusplus
}
#endif

#endif
