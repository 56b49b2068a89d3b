// traceback_source.cpp: provides Python stacks to libmarey.
#include "sources/python/traceback_source.h"

#include <marey/detail/log_format.h>
#include <marey/detail/python_stacks.h>

#include "sources/python/code_sites.h"
#include "sources/python/python_text.h"
#include "sources/python/traceback_frames.h"

static_assert(sizeof(marey_python_frame) == sizeof(marey::detail::PythonFrame));
static_assert(offsetof(marey_python_frame, lasti) == offsetof(marey::detail::PythonFrame, lasti));
static_assert(offsetof(marey_python_frame, place) == offsetof(marey::detail::PythonFrame, place));

namespace marey::python {
namespace {

enum State : int { kAlreadyHeld = -1 };

PyThreadState* current_thread() noexcept {
#if PY_VERSION_HEX >= 0x030d0000
    return PyThreadState_GetUnchecked();
#else
    return _PyThreadState_UncheckedGet();
#endif
}

bool enter(int& state) noexcept {
    if (Py_IsInitialized() == 0) return false;
    // The state that Python keeps for this thread; the current one belongs to another thread if that holds
    // the GIL.
    PyThreadState* own = PyGILState_GetThisThreadState();
    if (own == nullptr) return false;
    if (own == current_thread()) {
        state = kAlreadyHeld;
        return true;
    }
    if (is_finalizing()) return false;  // a thread that waits for the GIL then never returns
    state = PyGILState_Ensure();
    return true;
}

void leave(int state) noexcept {
    if (state != kAlreadyHeld) PyGILState_Release(static_cast<PyGILState_STATE>(state));
}

std::size_t capture(detail::PythonFrame* out, std::size_t room, std::size_t skip,
                    std::uintptr_t* anchors) noexcept {
    return marey_capture_python_frames(current_thread(), reinterpret_cast<marey_python_frame*>(out), room,
                                       skip, anchors);
}

void release(detail::PythonFrame* frames, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) Py_DECREF(static_cast<PyObject*>(frames[i].code));
}

/// The text; characters that are not Unicode are kept as in Python's file names.
std::string decoded(PyObject* object) {
    Py_ssize_t size = 0;
    if (const char* text = PyUnicode_AsUTF8AndSize(object, &size))
        return {text, static_cast<std::size_t>(size)};
    PyErr_Clear();
    std::string result = "??";
    if (const Ref bytes(PyUnicode_AsEncodedString(object, "utf-8", "surrogateescape")); bytes)
        result.assign(PyBytes_AS_STRING(bytes.get()),
                      static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.get())));
    return result;
}

void describe(const detail::PythonFrame& frame, TracebackFrame& out) {
    auto* code = static_cast<PyCodeObject*>(frame.code);
    const SavedError of_the_caller;
    out.name = decoded(code->co_name);
    out.filename = decoded(code->co_filename);
    const int line = PyCode_Addr2Line(code, frame.lasti);
    out.line = line > 0 ? line : 0;
}

std::uint64_t frame_word(const detail::PythonFrame& frame) noexcept {
    if (!claim_code_slot()) return 0;
    auto* code = static_cast<PyCodeObject*>(frame.code);
    const CodeWord word = code_word(code);
    if ((word & kCodeSkipped) != 0) return detail::kNoFrame;  // Marey's own
    const int line = PyCode_Addr2Line(code, frame.lasti);
    return site_of(word) | std::uint64_t{line > 0 ? static_cast<std::uint32_t>(line) : 0}
                               << detail::kFrameLineShift;
}

detail::PythonStacks offered{};

}  // namespace

void offer_python_stacks(const TracebackObjects& objects) noexcept {
    offered = {enter,        leave,          capture,        release,   describe,
               objects.wrap, objects.is_one, objects.unwrap, frame_word};
    detail::set_python_stacks(&offered);
}

}  // namespace marey::python
