// interpreter_frames.h: the interpreter's own frames, as far as the tracer looks into them.
#pragma once

#include <Python.h>

#include <cstddef>

#if PY_VERSION_HEX < 0x030C0000
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#else
#include <frameobject.h>
#endif

namespace marey::python {

#if PY_VERSION_HEX < 0x030C0000

/// The frame that a thread is in; null: none.
inline _PyInterpreterFrame* current_frame(PyThreadState* state) noexcept {
    return state->cframe->current_frame;
}

/// Of a generator's frame that is about to run, or runs its first instruction: nothing of it has run before.
inline bool is_at_start(const _PyInterpreterFrame* frame) noexcept {
    return _PyInterpreterFrame_LASTI(frame) <= frame->f_code->_co_firsttraceable;
}

/// Of one that has just run: it was suspended, and has not ended.
inline bool is_suspended(_PyInterpreterFrame* frame) noexcept {
    return _PyFrame_GetGenerator(frame)->gi_frame_state == FRAME_SUSPENDED;
}

/// Of a generator's frame that runs: its generator.
inline PyObject* generator_of(_PyInterpreterFrame* frame) noexcept {
    return reinterpret_cast<PyObject*>(_PyFrame_GetGenerator(frame));
}

/// Of one that runs: whether a generator runs it, rather than a plain call.
inline bool is_awaited(const _PyInterpreterFrame* frame) noexcept {
    return frame->previous != nullptr && frame->previous->owner == FRAME_OWNED_BY_GENERATOR;
}

/// The line that a frame, or else the one that called it, is at; -1: none.
inline int line_of(_PyInterpreterFrame* frame) noexcept {
    while (frame != nullptr && _PyFrame_IsIncomplete(frame)) frame = frame->previous;
    if (frame == nullptr) return -1;
    const int offset = _PyInterpreterFrame_LASTI(frame) * static_cast<int>(sizeof(_Py_CODEUNIT));
    return PyCode_Addr2Line(frame->f_code, offset);
}

/// Calls visit(frame, code, globals, line) for every call that a thread is in, the innermost first. `line`:
/// that it is at, where lines are wanted.
template <class Visit>
void visit_frames(PyThreadState* state, bool with_lines, Visit visit) {
    for (_PyInterpreterFrame* frame = current_frame(state); frame != nullptr; frame = frame->previous) {
        if (_PyFrame_IsIncomplete(frame)) continue;
        visit(frame, frame->f_code, frame->f_globals, with_lines ? line_of(frame) : -1);
    }
}

#else

/// The frame that the calling thread is in. It is only ever compared.
inline const void* running_frame() noexcept {
#if PY_VERSION_HEX < 0x030D0000
    return PyThreadState_Get()->cframe->current_frame;
#else
    return PyThreadState_Get()->current_frame;
#endif
}

/// The generator of such a frame, whose last part it is.
inline PyObject* generator_of(const void* frame) noexcept {
#if PY_VERSION_HEX < 0x030E0000
    return reinterpret_cast<PyObject*>(const_cast<char*>(static_cast<const char*>(frame)) -
                                       offsetof(PyGenObject, gi_iframe));
#else
    (void)frame;
    return nullptr;
#endif
}

/// The same; events of sys.monitoring know calls by their code, so the frame given is the code.
template <class Visit>
void visit_frames(PyThreadState* state, bool with_lines, Visit visit) {
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

/// The line that the caller of the running function is at; -1: there is none.
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
