// profile_hook.cpp: ranges from the events of CPython's C profile hook, on every thread.
#include "sources/python/py311/profile_hook.h"
#include "sources/python/py311/call_parts.h"

#if PY_VERSION_HEX < 0x030C0000

#include <new>

#include "record/source_writer.h"
#include "sources/python/c_function_sites.h"
#include "sources/python/code_sites.h"
#include "sources/python/first_argument.h"
#include "sources/python/greenlets.h"
#include "sources/python/interpreter_frames.h"
#include "sources/python/live_calls.h"
#include "sources/python/module_calls.h"
#include "sources/python/py311/frame_hook.h"
#include "sources/python/py311/library_frames.h"
#include "sources/python/python_text.h"
#include "sources/python/shadow_stack.h"
#include "sources/python/start_frames.h"

namespace marey::python {

namespace {

/// The hook's argument on one thread. Freed with the thread state, which holds the only reference.
struct ProfileThread {
    PyObject_HEAD std::uint32_t thread;  ///< the recorder's number; 0 before the first event
    bool is_prepared;                    ///< there is nothing to do before the next event
    ProfileThread* next;                 ///< in the list of all threads
    ProfileThread** link;
    ShadowStack stack;
};

// Guarded by the GIL.
ProfileThread* first_thread = nullptr;
std::uint64_t newest_thread = 0;            // the newest thread state that has been seen
PyInterpreterState* interpreter = nullptr;  // the one that is traced
PyCFunction start_new_thread = nullptr;     // of module _thread
bool is_on = false;
bool records_c = false;     // record calls into C
bool was_replaced = false;  // since the start

// Called with the end of the thread state, or when the program has replaced the hook: ends all open calls.
void end_profile_thread(PyObject* object) {
    auto* const self = reinterpret_cast<ProfileThread*>(object);
    if (!self->stack.is_empty() && is_on) {
        was_replaced = true;
        self->stack.close_all(self->thread, true);
    }
    forget_greenlets(self->stack);
    *self->link = self->next;
    if (self->next != nullptr) self->next->link = self->link;
    self->stack.~ShadowStack();
    PyObject_Free(object);
}

PyTypeObject profile_thread_type{};

int on_event(PyObject* self, PyFrameObject* frame, int what, PyObject* arg);
int on_python_event(PyObject* self, PyFrameObject* frame, int what, PyObject* arg);

bool is_ours(Py_tracefunc hook) noexcept {
    return hook == on_event || hook == on_python_event;
}
Py_tracefunc current_hook() noexcept {
    return records_c ? on_event : on_python_event;
}

ProfileThread* make_profile_thread() noexcept {
    auto* const self = PyObject_New(ProfileThread, &profile_thread_type);
    if (self == nullptr) return nullptr;
    new (&self->stack) ShadowStack;
    self->thread = 0;
    self->is_prepared = false;
    self->next = first_thread;
    self->link = &first_thread;
    if (first_thread != nullptr) first_thread->link = &self->next;
    first_thread = self;
    return self;
}

void find_start_new_thread() noexcept {
    const Ref function = attribute(Ref(PyImport_ImportModule("_thread")).get(), "start_new_thread");
    if (!function || !PyCFunction_Check(function.get())) return;
    start_new_thread = PyCFunction_GET_FUNCTION(function.get());
    c_function_sites.never_cache(reinterpret_cast<PyCFunctionObject*>(function.get())->m_ml);
}

// Like _PyEval_SetProfile() without the audit event, whose hooks could end threads or tracing while we
// iterate over the threads. Runs no program code.
void set_profile(PyThreadState* state, Py_tracefunc hook, PyObject* thread) noexcept {
    PyObject* const before = state->c_profileobj;
    state->c_profilefunc = hook;
    state->c_profileobj = Py_XNewRef(thread);
    const bool is_traced = state->c_tracefunc != nullptr || hook != nullptr;
    state->cframe->use_tracing = is_traced && state->tracing == 0 ? 255 : 0;
    Py_XDECREF(before);  // our object, or none
}

// Sets the hook on every thread that has none. False: some threads have another hook.
[[gnu::noinline]] bool hook_threads() noexcept {
    bool is_free = true;
    PyThreadState* const head = PyInterpreterState_ThreadHead(PyInterpreterState_Main());
    newest_thread = head->id;
    for (PyThreadState* state = head; state != nullptr; state = PyThreadState_Next(state)) {
        if (state->_initialized == 0) {  // being created by C without the GIL: the next call checks again
            newest_thread = 0;
            continue;
        }
        if (is_ours(state->c_profilefunc)) continue;
        if (state->c_profilefunc != nullptr) {
            is_free = false;
            continue;
        }
        ProfileThread* const thread = make_profile_thread();
        if (thread == nullptr) break;
        auto* const object = reinterpret_cast<PyObject*>(thread);
        set_profile(state, current_hook(), object);
        Py_DECREF(object);
    }
    return is_free;
}

// Whether tracing has ended, or started again with another object.
bool is_dropped(ProfileThread* self) noexcept {
    return !is_on || Py_REFCNT(reinterpret_cast<PyObject*>(self)) == 1;
}

// Handles the first event of a thread.
void register_thread(ProfileThread* self) noexcept {
    if (!attach_thread()) return;
    self->thread = detail::thread_number();
    self->is_prepared = watch_greenlets(&self->stack);
    if (is_dropped(self)) return;
    try {
        PyThreadState* const state = PyThreadState_Get();
        end_stale_thread_frames(current_frame(state));
        self->stack.adopt(start_frames.adopt(state));
    } catch (const std::bad_alloc&) {  // then its enclosing calls are missing
    }
}

// The site of a possible module call; 0: there is nothing to record any more. Reading the module may let
// other threads run, which may end tracing.
std::uint32_t site_of_module(ProfileThread* self, _PyInterpreterFrame* frame, CodeWord word) noexcept {
    const std::uint32_t site =
        module_site(word, frame->f_code, marey_first_argument_in(frame, frame->f_code));
    return is_dropped(self) ? 0 : site;
}

CodeWord word_of(const _PyInterpreterFrame* frame) noexcept {
    return call_filter.is_on ? filtered_word(frame->f_code, frame->f_globals) : code_word(frame->f_code);
}

void start_call(ProfileThread* self, _PyInterpreterFrame* frame) noexcept {
    const CodeWord word = word_of(frame);
    if (is_dropped(self)) return;
    ShadowStack& stack = self->stack;
    const std::uintptr_t key = CallKey::python(frame);
    const bool is_library = (word & kCodeLibrary) != 0;
    const bool is_excluded = call_filter.is_on && (word & kCodeExcluded) != 0;
    if ((word & kCodeSkipped) != 0 || is_excluded) return stack.skip(key, is_library, true);
    const bool is_too_deep = stack.depth() >= call_filter.max_depth;
    if (is_too_deep || (call_filter.folds && is_library && is_library_frame(frame->previous)))
        return stack.skip(key, is_library, false, is_too_deep);
    const bool is_part = (word & kCodeGenerator) != 0;
    const std::uint32_t site = (word & kCodeModule) != 0 ? site_of_module(self, frame, word) : site_of(word);
    if (site == 0) return;
    const std::uint64_t start = stack.open(key | (is_part ? CallKey::kPart : 0), site, Scope::PythonFunction,
                                           call_filter.has_lines ? line_of(frame->previous) : -1, is_library);
    if (is_part && start != 0) begin_call_part(frame, word, start);
}

void start_c_call(ProfileThread* self, _PyInterpreterFrame* frame, PyObject* function,
                  std::uintptr_t key) noexcept {
    const CodeWord caller = word_of(frame);
    const bool is_own = (caller & kCodeSkipped) != 0;
    const std::uint32_t site = PyCFunction_Check(function) && !is_own ? c_function_sites.site(function) : 0;
    if (is_dropped(self)) return;
    const bool is_folded = call_filter.folds && (caller & kCodeLibrary) != 0;
    if (site == 0 || is_folded || self->stack.is_cut()) return self->stack.skip(key, false, true);
    self->stack.open(key, site, Scope::CFunction, call_filter.has_lines ? line_of(frame) : -1);
}

// `frame`: the frame of the event.
void close_call(ProfileThread* self, std::uintptr_t key, _PyInterpreterFrame* frame) noexcept {
    const bool is_there = self->stack.close(key, [=]() { return EndingPart{frame, !is_suspended(frame)}; });
    if (!is_there && key == CallKey::python(frame)) end_adopted_frame(frame);
}

// Whether this function creates threads.
bool makes_threads(PyObject* function) noexcept {
    return PyCFunction_Check(function) && PyCFunction_GET_FUNCTION(function) == start_new_thread;
}

// Handles all unusual events.
[[gnu::noinline]] int on_unusual_event(ProfileThread* self, _PyInterpreterFrame* frame, int what,
                                       PyObject* arg) noexcept {
    // Code that runs in the event may end tracing, and the thread state releases the object.
    const Ref held = Ref::borrow(reinterpret_cast<PyObject*>(self));
    if (!self->is_prepared) register_thread(self);
    if (is_dropped(self)) return 0;
    switch (what) {
        case PyTrace_CALL: {
            // A thread created by C gets its hook at the next call of any thread that has one.
            if (PyInterpreterState_ThreadHead(interpreter)->id != newest_thread && is_on) hook_threads();
            start_call(self, frame);
            break;
        }
        case PyTrace_RETURN:
            close_call(self, CallKey::python(frame), frame);
            break;
        case PyTrace_C_CALL:
            start_c_call(self, frame, arg, makes_threads(arg) ? CallKey::maker(frame) : CallKey::c(frame));
            break;
        case PyTrace_C_RETURN:
        case PyTrace_C_EXCEPTION:
            if (makes_threads(arg)) {
                close_call(self, CallKey::maker(frame), frame);
                // A thread that Python code has just created gets its hook before it runs.
                if (is_on) hook_threads();
            } else {
                close_call(self, CallKey::c(frame), frame);
            }
            break;
        default:
            break;
    }
    return 0;
}

int on_event(PyObject* object, PyFrameObject* frame, int what, PyObject* arg) {
    auto* const self = reinterpret_cast<ProfileThread*>(object);
    _PyInterpreterFrame* const place = frame->f_frame;
    if (call_filter.is_on) return on_unusual_event(self, place, what, arg);
    detail::ThreadState* const thread = detail::current_thread;
    bool is_done = false;
    if (what == PyTrace_C_CALL) {
        const std::uint32_t site = c_function_sites.known_site(arg);
        is_done = site != 0 && self->is_prepared && (known_code(place->f_code) & kCodeSkipped) == 0 &&
                  self->stack.try_open(thread, CallKey::c(place), site, Scope::CFunction);
    } else if (what == PyTrace_C_RETURN || what == PyTrace_C_EXCEPTION) {
        is_done = self->stack.try_close(thread, CallKey::c(place));
    } else if (what == PyTrace_CALL) {
        const CodeWord word = known_code(place->f_code);
        const bool is_part = (word & kCodeGenerator) != 0;
        const std::uintptr_t key = CallKey::python(place) | (is_part ? CallKey::kPart : 0);
        const bool may_open = is_usual(word & ~kCodeGenerator) && self->is_prepared &&
                              PyInterpreterState_ThreadHead(interpreter)->id == newest_thread;
        const std::uint64_t start =
            may_open ? self->stack.try_open(thread, key, site_of(word), Scope::PythonFunction) : 0;
        is_done = start != 0;
        if (is_done && is_part) begin_call_part(place, word, start);
    } else if (what == PyTrace_RETURN) {
        const std::uintptr_t key = CallKey::python(place);
        is_done = self->stack.try_close(thread, key) || self->stack.try_close_part(thread, key, [=]() {
            return EndingPart{place, !is_suspended(place)};
        });
    }
    return is_done ? 0 : on_unusual_event(self, place, what, arg);
}

// The hook while calls into C are not recorded.
int on_python_event(PyObject* self, PyFrameObject* frame, int what, PyObject* arg) {
    if (what == PyTrace_CALL || what == PyTrace_RETURN) return on_event(self, frame, what, arg);
    if (what != PyTrace_C_CALL && is_on && makes_threads(arg)) hook_threads();
    return 0;
}

}  // namespace

bool start_profile_hook(bool c_calls) noexcept {
    if (profile_thread_type.tp_flags == 0) {
        Py_SET_REFCNT(reinterpret_cast<PyObject*>(&profile_thread_type), 1);
        profile_thread_type.tp_name = "marey.ProfileThread";
        profile_thread_type.tp_basicsize = sizeof(ProfileThread);
        profile_thread_type.tp_dealloc = end_profile_thread;
        profile_thread_type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
        if (PyType_Ready(&profile_thread_type) != 0) {
            PyErr_Clear();
            return false;
        }
    }
    was_replaced = false;
    interpreter = PyInterpreterState_Main();
    find_start_new_thread();
    is_on = true;
    records_c = c_calls;
    follow_greenlets([]() noexcept {
        for (ProfileThread* thread = first_thread; thread != nullptr; thread = thread->next)
            thread->is_prepared = false;
    });
    return hook_threads();
}

void prepare_profile_thread() noexcept {
    PyThreadState* const state = PyThreadState_Get();
    if (!is_ours(state->c_profilefunc)) return;
    auto* const self = reinterpret_cast<ProfileThread*>(state->c_profileobj);
    if (self->is_prepared) return;
    const Ref held =
        Ref::borrow(reinterpret_cast<PyObject*>(self));  // handling its first event may end tracing
    register_thread(self);
}

bool is_profile_hook_intact() noexcept {
    if (was_replaced || !is_ours(PyThreadState_Get()->c_profilefunc)) return false;
    for (PyThreadState* state = PyInterpreterState_ThreadHead(PyInterpreterState_Main()); state != nullptr;
         state = PyThreadState_Next(state)) {
        if (state->c_profilefunc != nullptr && !is_ours(state->c_profilefunc)) return false;
    }
    return true;
}

void change_profile_hook(bool c_calls) noexcept {
    const SavedError error;
    records_c = c_calls;
    c_function_sites.forget();
    for (ProfileThread* thread = first_thread; thread != nullptr; thread = thread->next) {
        thread->stack.forget_filter();
        if (!c_calls) thread->stack.forget_c_calls(thread->thread);
    }
    for (PyThreadState* state = PyInterpreterState_ThreadHead(PyInterpreterState_Main()); state != nullptr;
         state = PyThreadState_Next(state)) {
        if (is_ours(state->c_profilefunc)) set_profile(state, current_hook(), state->c_profileobj);
    }
}

void pause_profile_hook() noexcept {
    for (ProfileThread* thread = first_thread; thread != nullptr; thread = thread->next)
        thread->stack.close_all(thread->thread, true);
    stop_profile_hook();
}

void stop_profile_hook() noexcept {
    const SavedError error;
    is_on = false;
    follow_greenlets(nullptr);
    for (ProfileThread* thread = first_thread; thread != nullptr; thread = thread->next)
        thread->stack.close_all(thread->thread);
    for (PyThreadState* state = PyInterpreterState_ThreadHead(PyInterpreterState_Main()); state != nullptr;
         state = PyThreadState_Next(state)) {
        if (is_ours(state->c_profilefunc)) set_profile(state, nullptr, nullptr);
    }
    c_function_sites.clear();
}

}  // namespace marey::python

#endif
