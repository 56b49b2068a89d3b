// interpreter_frames.h: the interpreter's own frames, as far as the tracer looks into them.
#pragma once

#include <Python.h>

#if PY_VERSION_HEX < 0x030C0000
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#else
#include <frameobject.h>
#endif

namespace kymo::python {

#if PY_VERSION_HEX < 0x030C0000

/// The frame that a thread is in; null: none.
inline _PyInterpreterFrame* current_frame(PyThreadState* state) noexcept {
    return state->cframe->current_frame;
}

/// Calls visit(frame, code) for every call that a thread is in, the innermost first.
template <class Visit>
void visit_frames(PyThreadState* state, Visit visit) {
    for (_PyInterpreterFrame* frame = current_frame(state); frame != nullptr; frame = frame->previous) {
        if (!_PyFrame_IsIncomplete(frame)) visit(frame, frame->f_code);
    }
}

#else

/// The same; events of sys.monitoring know calls by their code, so the frame given is the code.
template <class Visit>
void visit_frames(PyThreadState* state, Visit visit) {
    PyFrameObject* frame = PyThreadState_GetFrame(state);
    while (frame != nullptr) {
        PyCodeObject* const code = PyFrame_GetCode(frame);
        visit(static_cast<const void*>(code), code);
        Py_DECREF(code);
        PyFrameObject* const outer = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = outer;
    }
}

#endif

}  // namespace kymo::python
