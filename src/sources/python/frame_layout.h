/* frame_layout.h: the interpreter's frames, whose layout differs between the versions of CPython. For C
 * files, since the interpreter's internal headers are C.
 *
 * Several calls of Python functions share one C frame of the interpreter, its *entry*. 3.11: each entry has a
 * _PyCFrame in its C frame, and the outermost Python frame of an entry is marked. 3.12 and later: an entry
 * has a separate frame in its C frame, which is not a call. */
#ifndef MAREY_SOURCES_PYTHON_FRAME_LAYOUT_H
#define MAREY_SOURCES_PYTHON_FRAME_LAYOUT_H

#include <Python.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wextra"
#define Py_BUILD_CORE 1
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
#if PY_VERSION_HEX >= 0x030e0000
#include <internal/pycore_genobject.h>
#include <internal/pycore_interpframe.h>
#endif
#undef Py_BUILD_CORE
#pragma GCC diagnostic pop

#if PY_VERSION_HEX >= 0x030e0000
#define IS_ENTRY(frame) ((frame)->owner >= FRAME_OWNED_BY_INTERPRETER)
#define CODE_OF(frame) _PyFrame_GetCode(frame)
#define LOCAL_OF(frame, index) PyStackRef_AsPyObjectBorrow((frame)->localsplus[index])
#define GENERATOR_OF(frame) _PyGen_GetGeneratorFromFrame(frame)
#elif PY_VERSION_HEX >= 0x030d0000
#define IS_ENTRY(frame) ((frame)->owner == FRAME_OWNED_BY_CSTACK)
#define CODE_OF(frame) ((PyCodeObject*)(frame)->f_executable)
#define LOCAL_OF(frame, index) ((frame)->localsplus[index])
#define GENERATOR_OF(frame) _PyFrame_GetGenerator(frame)
#else
#if PY_VERSION_HEX >= 0x030c0000
#define IS_ENTRY(frame) ((frame)->owner == FRAME_OWNED_BY_CSTACK)
#else
#define IS_ENTRY(frame) 0
#endif
#define CODE_OF(frame) ((frame)->f_code)
#define LOCAL_OF(frame, index) ((frame)->localsplus[index])
#define GENERATOR_OF(frame) _PyFrame_GetGenerator(frame)
#endif

/* The innermost frame of a thread, which may be an entry or incomplete; NULL: it runs no Python code. */
static inline _PyInterpreterFrame* innermost_frame(PyThreadState* thread) {
#if PY_VERSION_HEX >= 0x030d0000
    return thread->current_frame;
#else
    return thread->cframe != NULL ? thread->cframe->current_frame : NULL;
#endif
}

#endif
