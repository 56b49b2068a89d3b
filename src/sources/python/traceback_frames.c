/* traceback_frames.c: reads the Python frames of a thread from the interpreter's data structures. In C, like
 * the interpreter's headers. */
#include "traceback_frames.h"

#include "frame_layout.h"

size_t marey_capture_python_frames(PyThreadState* thread, struct marey_python_frame* out, size_t room,
                                   size_t skip, uintptr_t* anchors) {
    size_t count = 0;
    size_t anchored = 0; /* frames whose anchor is known; on 3.12 and later it comes after them */
#if PY_VERSION_HEX < 0x030c0000
    _PyCFrame* entry = thread->cframe;
#endif
    for (_PyInterpreterFrame* frame = innermost_frame(thread); frame != NULL; frame = frame->previous) {
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
                    out[count].code = Py_NewRef((PyObject*)CODE_OF(frame));
                    out[count].lasti =
                        (int32_t)(_PyInterpreterFrame_LASTI(frame) * (int)sizeof(_Py_CODEUNIT));
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
