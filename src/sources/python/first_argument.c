/* first_argument.c: the first argument of a running call. In C, like the interpreter's headers. */
#include "first_argument.h"

#include "frame_layout.h"

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
    for (_PyInterpreterFrame* frame = innermost_frame(thread); frame != NULL; frame = frame->previous) {
        if (IS_ENTRY(frame) || _PyFrame_IsIncomplete(frame)) continue;
        if (skip-- != 0) continue;
        return CODE_OF(frame) == code ? marey_first_argument_in(frame, code) : NULL;
    }
    return NULL;
}
