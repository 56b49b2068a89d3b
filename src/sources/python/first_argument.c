/* first_argument.c: the first argument of a running call. In C, like the interpreter's headers. */
#include "first_argument.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wextra"
#define Py_BUILD_CORE 1
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#pragma GCC diagnostic pop

#if PY_VERSION_HEX >= 0x030e0000
#define IS_ENTRY(frame) ((frame)->owner >= FRAME_OWNED_BY_INTERPRETER)
#define CODE_OF(frame) ((PyCodeObject*)PyStackRef_AsPyObjectBorrow((frame)->f_executable))
#define LOCAL_OF(frame, index) PyStackRef_AsPyObjectBorrow((frame)->localsplus[index])
#elif PY_VERSION_HEX >= 0x030d0000
#define IS_ENTRY(frame) ((frame)->owner == FRAME_OWNED_BY_CSTACK)
#define CODE_OF(frame) ((PyCodeObject*)(frame)->f_executable)
#define LOCAL_OF(frame, index) ((frame)->localsplus[index])
#elif PY_VERSION_HEX >= 0x030c0000
#define IS_ENTRY(frame) ((frame)->owner == FRAME_OWNED_BY_CSTACK)
#define CODE_OF(frame) ((frame)->f_code)
#define LOCAL_OF(frame, index) ((frame)->localsplus[index])
#else
#define IS_ENTRY(frame) 0
#define CODE_OF(frame) ((frame)->f_code)
#define LOCAL_OF(frame, index) ((frame)->localsplus[index])
#endif

static PyObject* local(_PyInterpreterFrame* frame, PyCodeObject* code, int index) {
    PyObject* value = LOCAL_OF(frame, index);
    /* A variable used by inner functions is in a cell after the first instructions. */
    const char* kinds = PyBytes_AS_STRING(code->co_localspluskinds);
    if (value != NULL && (kinds[index] & CO_FAST_CELL) != 0 && PyCell_Check(value)) value = PyCell_GET(value);
    return value;
}

PyObject* marey_first_argument_in(void* place, PyCodeObject* code) {
    _PyInterpreterFrame* frame = (_PyInterpreterFrame*)place;
    if (code->co_argcount > 0) return local(frame, code, 0);
    if ((code->co_flags & CO_VARARGS) == 0) return NULL;
    PyObject* all = local(frame, code, code->co_kwonlyargcount);
    return all != NULL && PyTuple_Check(all) && PyTuple_GET_SIZE(all) > 0 ? PyTuple_GET_ITEM(all, 0) : NULL;
}

PyObject* marey_first_argument(PyThreadState* thread, size_t skip, PyCodeObject* code) {
#if PY_VERSION_HEX >= 0x030d0000
    _PyInterpreterFrame* frame = thread->current_frame;
#else
    _PyInterpreterFrame* frame = thread->cframe != NULL ? thread->cframe->current_frame : NULL;
#endif
    for (; frame != NULL; frame = frame->previous) {
        if (IS_ENTRY(frame) || _PyFrame_IsIncomplete(frame)) continue;
        if (skip-- != 0) continue;
        return CODE_OF(frame) == code ? marey_first_argument_in(frame, code) : NULL;
    }
    return NULL;
}
