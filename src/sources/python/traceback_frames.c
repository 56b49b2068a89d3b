/* traceback_frames.c: reads the Python frames of a thread from the interpreter's data structures. In C, like
 * the interpreter's headers. */
#include "traceback_frames.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wextra"
#define Py_BUILD_CORE 1
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#pragma GCC diagnostic pop

/* Differences between versions. Several calls of Python functions share one C frame of the interpreter, its
 * *entry*. 3.11: each entry has a _PyCFrame in its C frame, and the outermost Python frame of an entry is
 * marked. 3.12 and later: an entry has a separate frame in its C frame, owned by the C stack, which is not a
 * call. */

#if PY_VERSION_HEX >= 0x030d0000
static _PyInterpreterFrame* innermost(PyThreadState* thread) {
    return thread->current_frame;
}
#else
static _PyInterpreterFrame* innermost(PyThreadState* thread) {
    return thread->cframe != NULL ? thread->cframe->current_frame : NULL;
}
#endif

#if PY_VERSION_HEX >= 0x030e0000
#define IS_ENTRY(frame) ((frame)->owner >= FRAME_OWNED_BY_INTERPRETER)
#define CODE_OF(frame) ((PyCodeObject*)PyStackRef_AsPyObjectBorrow((frame)->f_executable))
#define NEXT_OF(frame) ((frame)->instr_ptr)
#elif PY_VERSION_HEX >= 0x030d0000
#define IS_ENTRY(frame) ((frame)->owner == FRAME_OWNED_BY_CSTACK)
#define CODE_OF(frame) ((PyCodeObject*)(frame)->f_executable)
#define NEXT_OF(frame) ((frame)->instr_ptr)
#elif PY_VERSION_HEX >= 0x030c0000
#define IS_ENTRY(frame) ((frame)->owner == FRAME_OWNED_BY_CSTACK)
#define CODE_OF(frame) ((frame)->f_code)
#define NEXT_OF(frame) ((frame)->prev_instr)
#else
#define IS_ENTRY(frame) 0
#define CODE_OF(frame) ((frame)->f_code)
#define NEXT_OF(frame) ((frame)->prev_instr)
#endif

size_t marey_capture_python_frames(PyThreadState* thread, struct marey_python_frame* out, size_t room,
                                   size_t skip, uintptr_t* anchors) {
    size_t count = 0;
    size_t anchored = 0; /* frames whose anchor is known; on 3.12 and later it comes after them */
#if PY_VERSION_HEX < 0x030c0000
    _PyCFrame* entry = thread->cframe;
#endif
    for (_PyInterpreterFrame* frame = innermost(thread); frame != NULL; frame = frame->previous) {
        if (IS_ENTRY(frame)) {
            if (anchors != NULL) {
                for (; anchored < count && anchored < room; ++anchored) anchors[anchored] = (uintptr_t)frame;
            }
            continue;
        }
        if (!_PyFrame_IsIncomplete(frame)) {
            if (skip > 0) {
                --skip;
            } else {
                if (count < room) {
                    PyCodeObject* code = CODE_OF(frame);
                    out[count].code = Py_NewRef((PyObject*)code);
                    out[count].lasti =
                        (int32_t)((NEXT_OF(frame) - _PyCode_CODE(code)) * (Py_ssize_t)sizeof(_Py_CODEUNIT));
                    out[count].place = 0;
#if PY_VERSION_HEX < 0x030c0000
                    if (anchors != NULL) anchors[count] = (uintptr_t)entry;
                    anchored = count + 1;
#endif
                }
                ++count;
            }
        }
#if PY_VERSION_HEX < 0x030c0000
        if (frame->is_entry && entry != NULL) entry = entry->previous;
#endif
    }
    if (anchors != NULL) {
        for (; anchored < count && anchored < room; ++anchored) anchors[anchored] = 0;
    }
    return count;
}
