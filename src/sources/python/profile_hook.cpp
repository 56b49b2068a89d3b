// profile_hook.cpp: ranges from the events of CPython's C profile hook, on every thread.
#include "sources/python/profile_hook.h"

#if PY_VERSION_HEX < 0x030C0000

#include <new>

#include "record/source_writer.h"
#include "sources/python/c_function_sites.h"
#include "sources/python/code_sites.h"
#include "sources/python/first_argument.h"
#include "sources/python/interpreter_frames.h"
#include "sources/python/module_calls.h"
#include "sources/python/python_text.h"
#include "sources/python/shadow_stack.h"
#include "sources/python/start_frames.h"

namespace kymo::python {

namespace {

/// The hook's argument on one thread: goes with the thread state, which holds the only reference.
struct ProfileThread {
    PyObject_HEAD ShadowStack stack;
    std::uint32_t thread;  ///< the recorder's number; 0 before the first event
    ProfileThread* next;   ///< of all of them
    ProfileThread** link;
};

// Guarded by the GIL.
ProfileThread* first_thread = nullptr;
std::uint64_t newest_thread = 0;            // the youngest thread state that has been looked at
PyInterpreterState* interpreter = nullptr;  // the one that is traced
PyCFunction start_new_thread = nullptr;     // of module _thread
bool is_on = false;

void end_profile_thread(PyObject* object) {
    auto* const self = reinterpret_cast<ProfileThread*>(object);
    *self->link = self->next;
    if (self->next != nullptr) self->next->link = self->link;
    self->stack.~ShadowStack();
    PyObject_Free(object);
}

PyTypeObject profile_thread_type{};

int on_event(PyObject* self, PyFrameObject* frame, int what, PyObject* arg);

ProfileThread* make_profile_thread() noexcept {
    auto* const self = PyObject_New(ProfileThread, &profile_thread_type);
    if (self == nullptr) return nullptr;
    new (&self->stack) ShadowStack;
    self->thread = 0;
    self->next = first_thread;
    self->link = &first_thread;
    if (first_thread != nullptr) first_thread->link = &self->next;
    first_thread = self;
    return self;
}

void find_start_new_thread() noexcept {
    PyObject* const module = PyImport_ImportModule("_thread");
    PyObject* const function =
        module != nullptr ? PyObject_GetAttrString(module, "start_new_thread") : nullptr;
    if (function != nullptr && PyCFunction_Check(function))
        start_new_thread = PyCFunction_GET_FUNCTION(function);
    Py_XDECREF(function);
    Py_XDECREF(module);
    PyErr_Clear();
}

// Puts the hook onto every thread that has none. False: some have somebody else's.
[[gnu::noinline]] bool hook_threads() noexcept {
    const KeptError error;
    bool is_free = true;
    PyThreadState* const head = PyInterpreterState_ThreadHead(PyInterpreterState_Main());
    newest_thread = head->id;
    for (PyThreadState* state = head; state != nullptr; state = PyThreadState_Next(state)) {
        if (state->c_profilefunc == on_event) continue;
        if (state->c_profilefunc != nullptr) {
            is_free = false;
            continue;
        }
        ProfileThread* const thread = make_profile_thread();
        if (thread == nullptr) break;
        auto* const object = reinterpret_cast<PyObject*>(thread);
        if (_PyEval_SetProfile(state, on_event, object) != 0) is_free = false;  // an audit hook says no
        Py_DECREF(object);
        PyErr_Clear();
    }
    return is_free;
}

// The first event of a thread.
[[gnu::noinline]] void meet(ProfileThread* self) noexcept {
    if (!attach_thread()) return;
    self->thread = detail::thread_number();
    try {
        self->stack.adopt(start_frames.adopt(PyThreadState_Get()));
    } catch (const std::bad_alloc&) {  // then its outer calls are missing
    }
}

// A call that is not recorded, or one of a module.
[[gnu::noinline]] void open_unusual(ProfileThread* self, _PyInterpreterFrame* place, CodeWord word) noexcept {
    const std::uintptr_t key = ShadowStack::python_key(place);
    if ((word & kCodeSkipped) != 0) return self->stack.skip(key);
    // Asking the module may let other threads run: one of them may end tracing, and drop this.
    auto* const object = reinterpret_cast<PyObject*>(self);
    Py_INCREF(object);
    const std::uint32_t site = module_site(word, place->f_code, kymo_first_argument_in(place, place->f_code));
    if (is_on) self->stack.open(key, site, Scope::PythonFunction);
    Py_DECREF(object);
}

int on_event(PyObject* object, PyFrameObject* frame, int what, PyObject* arg) {
    auto* const self = reinterpret_cast<ProfileThread*>(object);
    if (self->thread == 0) [[unlikely]]
        meet(self);
    _PyInterpreterFrame* const place = frame->f_frame;
    switch (what) {
        case PyTrace_CALL: {
            const CodeWord word = code_word(place->f_code);
            // One that C has made gets it at the next call of any thread that has one.
            if (PyInterpreterState_ThreadHead(interpreter)->id != newest_thread && is_on) [[unlikely]]
                hook_threads();
            if ((word & (kCodeSkipped | kCodeModule)) != 0) [[unlikely]]
                open_unusual(self, place, word);
            else
                self->stack.open(ShadowStack::python_key(place), site_of(word), Scope::PythonFunction);
            break;
        }
        case PyTrace_RETURN:
            self->stack.close(ShadowStack::python_key(place));
            break;
        case PyTrace_C_CALL: {
            const std::uint32_t site = PyCFunction_Check(arg) ? c_function_sites.site(arg) : 0;
            if (site == 0) [[unlikely]]
                self->stack.skip(ShadowStack::c_key(place));
            else
                self->stack.open(ShadowStack::c_key(place), site, Scope::CFunction);
            break;
        }
        case PyTrace_C_RETURN:
        case PyTrace_C_EXCEPTION:
            self->stack.close(ShadowStack::c_key(place));
            // A thread that Python code has just made gets its hook before it runs for the first time.
            if (PyCFunction_Check(arg) && PyCFunction_GET_FUNCTION(arg) == start_new_thread && is_on)
                [[unlikely]]
                hook_threads();
            break;
        default:
            break;
    }
    return 0;
}

}  // namespace

bool start_profile_hook() noexcept {
    if (profile_thread_type.tp_flags == 0) {
        Py_SET_REFCNT(reinterpret_cast<PyObject*>(&profile_thread_type), 1);
        profile_thread_type.tp_name = "kymo.ProfileThread";
        profile_thread_type.tp_basicsize = sizeof(ProfileThread);
        profile_thread_type.tp_dealloc = end_profile_thread;
        profile_thread_type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
        if (PyType_Ready(&profile_thread_type) != 0) {
            PyErr_Clear();
            return false;
        }
    }
    interpreter = PyInterpreterState_Main();
    find_start_new_thread();
    is_on = true;
    return hook_threads();
}

void stop_profile_hook() noexcept {
    const KeptError error;
    is_on = false;
    for (ProfileThread* thread = first_thread; thread != nullptr; thread = thread->next)
        thread->stack.close_all(thread->thread);
    for (PyThreadState* state = PyInterpreterState_ThreadHead(PyInterpreterState_Main()); state != nullptr;
         state = PyThreadState_Next(state)) {
        if (state->c_profilefunc != on_event) continue;
        _PyEval_SetProfile(state, nullptr, nullptr);
        PyErr_Clear();
    }
    c_function_sites.clear();
}

}  // namespace kymo::python

#endif
