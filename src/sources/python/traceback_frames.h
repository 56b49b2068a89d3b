/* traceback_frames.h: reads the Python frames of a thread from the interpreter's data structures. */
#pragma once

#include <Python.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The same layout as marey::detail::PythonFrame. */
struct marey_python_frame {
    void* code; /* a new reference */
    int32_t lasti;
    uint32_t place;
};

/* Returns the number of this thread's frames without the `skip` innermost, and writes the first `room` of
 * them, innermost first; `anchors`, unless null, receives for each an address within the C frame of the
 * interpreter that runs it. Frames that have not begun yet are left out. Needs the GIL. Runs no Python code.
 */
size_t marey_capture_python_frames(PyThreadState* thread, struct marey_python_frame* out, size_t room,
                                   size_t skip, uintptr_t* anchors);

#ifdef __cplusplus
}
#endif
