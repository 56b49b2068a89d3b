// interpreter_frames.h: the interpreter's frames, as far as the tracer reads them.
#pragma once

#include <Python.h>

#if PY_VERSION_HEX < 0x030C0000
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#else
#include <frameobject.h>
extern "C" PyObject* marey_generator_of(const void* frame);  // interpreter_frames.c
#endif

namespace marey::python {

#if PY_VERSION_HEX < 0x030C0000

/// The current frame of a thread, or null.
inline _PyInterpreterFrame* current_frame(PyThreadState* state) noexcept {
    return state->cframe->current_frame;
}

/// For a generator's frame that is about to run or runs its first instruction: whether it has never run
/// before.
inline bool is_at_start(const _PyInterpreterFrame* frame) noexcept {
    return _PyInterpreterFrame_LASTI(frame) <= frame->f_code->_co_firsttraceable;
}

/// For a frame that has just run: whether it was suspended and has not ended.
inline bool is_suspended(_PyInterpreterFrame* frame) noexcept {
    return _PyFrame_GetGenerator(frame)->gi_frame_state == FRAME_SUSPENDED;
}

/// For a running frame of a generator: the generator.
inline PyObject* generator_of(_PyInterpreterFrame* frame) noexcept {
    return reinterpret_cast<PyObject*>(_PyFrame_GetGenerator(frame));
}

/// For a running frame: whether a generator runs it, rather than a plain call.
inline bool is_awaited(const _PyInterpreterFrame* frame) noexcept {
    return frame->previous != nullptr && frame->previous->owner == FRAME_OWNED_BY_GENERATOR;
}

/// The current line of a frame, or else of its caller; -1: none.
inline int line_of(_PyInterpreterFrame* frame) noexcept {
    while (frame != nullptr && _PyFrame_IsIncomplete(frame)) frame = frame->previous;
    if (frame == nullptr) return -1;
    const int offset = _PyInterpreterFrame_LASTI(frame) * static_cast<int>(sizeof(_Py_CODEUNIT));
    return PyCode_Addr2Line(frame->f_code, offset);
}

/// Calls visit(frame, code, globals, line) for every running call of a thread, the innermost first. `line`:
/// its current line, if lines are recorded.
void visit_frames(PyThreadState* state, bool with_lines, auto visit) {
    for (_PyInterpreterFrame* frame = current_frame(state); frame != nullptr; frame = frame->previous) {
        if (_PyFrame_IsIncomplete(frame)) continue;
        visit(frame, frame->f_code, frame->f_globals, with_lines ? line_of(frame) : -1);
    }
}

#else

/// The current frame of the calling thread, used only for comparisons.
inline const void* running_frame() noexcept {
#if PY_VERSION_HEX < 0x030D0000
    return PyThreadState_Get()->cframe->current_frame;
#else
    return PyThreadState_Get()->current_frame;
#endif
}

/// The generator of such a frame, which runs its last part. Borrowed.
inline PyObject* generator_of(const void* frame) noexcept {
    return marey_generator_of(frame);
}

/// The same; events of sys.monitoring identify calls by their code, so the frame is the code.
void visit_frames(PyThreadState* state, bool with_lines, auto visit) {
    PyFrameObject* frame = PyThreadState_GetFrame(state);
    while (frame != nullptr) {
        PyCodeObject* const code = PyFrame_GetCode(frame);
        PyObject* const globals = PyFrame_GetGlobals(frame);
        visit(static_cast<const void*>(code), code, globals, with_lines ? PyFrame_GetLineNumber(frame) : -1);
        Py_XDECREF(globals);
        Py_DECREF(code);
        PyFrameObject* const outer = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = outer;
    }
}

/// The current line of the running function's caller; -1: there is none.
inline int line_of_caller() noexcept {
    PyFrameObject* const frame = PyThreadState_GetFrame(PyThreadState_Get());
    PyFrameObject* const outer = frame != nullptr ? PyFrame_GetBack(frame) : nullptr;
    const int line = outer != nullptr ? PyFrame_GetLineNumber(outer) : -1;
    Py_XDECREF(outer);
    Py_XDECREF(frame);
    return line;
}

#endif

}  // namespace marey::python
