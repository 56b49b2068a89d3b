// tracer.cpp: selects the hook, and sets and removes it with the sessions; records garbage collections.
#include "sources/python/tracer.h"

#include <Python.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "record/source_writer.h"
#include "sources/python/asyncio_tasks.h"
#include "sources/python/c_function_sites.h"
#include "sources/python/call_costs.h"
#include "sources/python/code_sites.h"
#include "sources/python/filtered_calls.h"
#include "sources/python/greenlets.h"
#include "sources/python/interpreter_frames.h"
#include "sources/python/live_calls.h"
#include "sources/python/module_calls.h"
#include "sources/python/monitoring.h"
#include "sources/python/py311/frame_hook.h"
#include "sources/python/py311/profile_hook.h"
#include "sources/python/python_text.h"
#include "sources/python/start_frames.h"

namespace marey::python {
namespace {

using detail::Opened;

// Guarded by the GIL. One collection runs at a time, and ends on the thread on which it began.
PyObject* gc_callback = nullptr;  // created once, never freed
PyObject* callbacks = nullptr;    // the list that holds it, while tracing
Opened collection_range{0, detail::kNotOpen};
std::uint32_t opened_thread = 0;

std::int64_t number(PyObject* info, const char* key) noexcept {
    PyObject* const value = PyDict_Check(info) ? PyDict_GetItemString(info, key) : nullptr;  // borrowed
    const long long read = value != nullptr && PyLong_Check(value) ? PyLong_AsLongLong(value) : -1;
    PyErr_Clear();
    return read;
}

void begin_collection() noexcept {
    static std::uint32_t site = 0;
    if (site == 0) site = traced_site("Python GC", "gc", 0, Scope::GarbageCollection);
    if (collection_range.index != detail::kNotOpen) return;
    before_range();
    collection_range = detail::open_range(site, Scope::GarbageCollection);
    opened_thread = detail::thread_number();
}

void end_collection(PyObject* info) noexcept {
    const Opened ended = std::exchange(collection_range, {0, detail::kNotOpen});
    if (ended.index == detail::kNotOpen) return;
    if (opened_thread != detail::thread_number()) return detail::close_elsewhere(ended, opened_thread);
    const KeyedValue values[] = {{"generation", number(info, "generation")},
                                 {"collected", number(info, "collected")},
                                 {"uncollectable", number(info, "uncollectable")}};
    close_with_values(ended, values);
}

// The interpreter's last collections are not part of the program.
bool is_ending() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing() != 0;
#else
    return _Py_IsFinalizing() != 0;
#endif
}

// phase, info
PyObject* on_collection(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (count >= 2 && callbacks != nullptr && !is_ending() && PyUnicode_Check(args[0])) {
        const SavedError error;
        if (PyUnicode_CompareWithASCIIString(args[0], "start") == 0) {
            begin_collection();
        } else if (PyUnicode_CompareWithASCIIString(args[0], "stop") == 0) {
            end_collection(args[1]);
        }
    }
    Py_RETURN_NONE;
}

PyMethodDef method = {"on_collection", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(on_collection)),
                      METH_FASTCALL, nullptr};

// The index of the gc_callback in the list, or -1. Comparing by identity runs no code.
Py_ssize_t place_in(PyObject* list) noexcept {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
        if (PyList_GET_ITEM(list, i) == gc_callback) return i;
    }
    return -1;
}

/// Both need the GIL and keep the error indicator. Starting adds a callback to gc.callbacks unless it is
/// there already.
void start_gc_ranges() noexcept {
    const SavedError error;
    if (callbacks != nullptr) return;
    if (gc_callback == nullptr) gc_callback = PyCFunction_New(&method, nullptr);
    PyObject* const module = PyImport_ImportModule("gc");
    PyObject* const list = module != nullptr ? PyObject_GetAttrString(module, "callbacks") : nullptr;
    Py_XDECREF(module);
    const bool is_there = gc_callback != nullptr && list != nullptr && PyList_Check(list) &&
                          (place_in(list) >= 0 || PyList_Append(list, gc_callback) == 0);
    if (is_there) {
        callbacks = list;
    } else {
        Py_XDECREF(list);
    }
    PyErr_Clear();
}

void stop_gc_ranges() noexcept {
    const SavedError error;
    PyObject* const list = std::exchange(callbacks, nullptr);
    if (list == nullptr) return;
    if (const Py_ssize_t place = place_in(list); place >= 0) PyList_SetSlice(list, place, place + 1, nullptr);
    Py_DECREF(list);
    PyErr_Clear();
    const Opened ended = std::exchange(collection_range, {0, detail::kNotOpen});
    if (ended.index != detail::kNotOpen) detail::close_elsewhere(ended, opened_thread);
}

}  // namespace

bool is_tracing = false;

namespace {

void forget_other_threads() noexcept {
#if PY_VERSION_HEX < 0x030C0000
    frame_hook_forked();
#else
    monitoring_forked();
#endif
}

enum class Mode : std::uint8_t {
    Off = 0,
    PythonCalls = 1,
    WithC = 2,     ///< calls into C too
    WithAllC = 3,  ///< also at call sites that call Python functions
};

// The mode that the sessions request. Written when one starts or stops, read with the GIL.
std::atomic<Mode> requested_mode{Mode::Off};
std::atomic<bool> requests_all_c{false};
std::atomic<std::uint64_t> start_ticks{0};  // of the session that is starting; 0: not known yet

Mode current_mode = Mode::Off;  // guarded by the GIL, like the next
bool is_paused = false;         // the budget is spent: the hook is removed
bool are_costs_known[4] = {};   // by mode

// The number of sessions being started by callers that will call apply_tracer() when everything is ready.
std::atomic<int> held{0};

// Applying may run Python code, and so a pending call or another thread that applies too: that is done when
// the first one has finished. Guarded by the GIL.
bool is_requested = false;
bool is_applying = false;

int apply_pending(void*) {
    if (held.load() == 0) apply_tracer();
    return 0;
}

#if PY_VERSION_HEX < 0x030C0000
// The number of calls is not known because the hook is removed there.
std::string about_gaps(std::uint64_t count) {
    return "calls made within " + std::to_string(count) + (count == 1 ? " deep call" : " deep calls") +
           " were not recorded (their number is unknown): more than half of the thread's C stack was in use "
           "(--c-calls, in Python c_calls=True, records all of them; so does a larger stack, such as "
           "ulimit -s unlimited)";
}
#endif

class TracerSource final : public Source {
  public:
    const char* name() const noexcept override { return "python"; }
    void needs_changed(const RecordingNeeds& needs) noexcept override {
        const ScopeSet scopes = ScopeSet::from_bits(needs.scopes);
        Mode mode = Mode::Off;
        if ((needs.option_bits & detail::kOptionStacks) != 0) {
            if (scopes.contains(Scope::PythonFunction)) mode = Mode::PythonCalls;
            if (scopes.contains(Scope::CFunction))
                mode = requests_all_c.load() ? Mode::WithAllC : Mode::WithC;
        }
        set_module_children((needs.option_bits & detail::kOptionModules) != 0);
        set_requested_calls(needs.calls);
        if (requested_mode.exchange(mode) == mode && needs.calls.empty()) return;
        if (start_ticks.load() == 0) start_ticks.store(source_ticks());
        // We must not wait for the GIL here: the interpreter makes a pending call, unless a thread with the
        // GIL applies first.
        if (Py_IsInitialized()) Py_AddPendingCall(apply_pending, nullptr);
    }
    void flush(std::uint64_t, bool) noexcept override {
#if PY_VERSION_HEX < 0x030C0000
        if (const std::uint64_t gaps = frame_hook_gaps()) {
            note_problem("python_calls_missing", about_gaps(gaps));
        }
#else
        if (const std::uint64_t count = monitoring_lost_instructions()) {
            note_problem("python_c_calls_missing",
                         std::to_string(count) + (count == 1 ? " call site has" : " call sites have") +
                             " called C functions and then a Python function: later calls into C are "
                             "missing there (c_calls=\"all\" records them but is slower)",
                         false);
        }
#endif
    }
    // The interpreter's locks are as the parent's other threads left them, so the interpreter must not be
    // called. Its own fork handler runs later, and calls unhook_child().
    void forked() noexcept override {
        requested_mode.store(Mode::Off);
        requests_all_c.store(false);
        start_ticks.store(0);
        held.store(0);
        clear_requested_calls();
        forget_other_threads();
    }
};

PyObject* unhook_child(PyObject*, PyObject*) {
    apply_tracer();
    Py_RETURN_NONE;
}
PyMethodDef unhook_child_method = {"unhook_child", unhook_child, METH_NOARGS, nullptr};

// From now on children of os.fork() run without a hook. A child of another fork() keeps it, and it passes all
// calls through.
void watch_forks() noexcept {
    static bool is_done = false;
    if (is_done) return;
    PyObject* const os = PyImport_ImportModule("os");
    PyObject* const watch = os != nullptr ? PyObject_GetAttrString(os, "register_at_fork") : nullptr;
    PyObject* const function = watch != nullptr ? PyCFunction_New(&unhook_child_method, nullptr) : nullptr;
    PyObject* const none = function != nullptr ? PyTuple_New(0) : nullptr;
    PyObject* const when = none != nullptr ? Py_BuildValue("{sO}", "after_in_child", function) : nullptr;
    PyObject* const result = when != nullptr ? PyObject_Call(watch, none, when) : nullptr;
    is_done = result != nullptr;
    for (PyObject* const each : {result, when, none, function, watch, os}) Py_XDECREF(each);
    PyErr_Clear();
}

#if PY_VERSION_HEX < 0x030C0000

bool is_profiling = false;  // which hook is set: the profile hook, or the frame hook; guarded by the GIL

void check_hook() noexcept {
    if (!is_profiling || is_profile_hook_intact()) return;
    note_problem("python_profile_hook",
                 "the program has replaced Marey's profile hook with another one (sys.setprofile, cProfile, "
                 "...): later "
                 "calls of that thread are missing, and those of threads that it starts may be missing too");
}

// Raises the audit event of sys.setprofile(): once, and while no profile hook is set, since it runs the
// program's audit hooks.
bool is_profile_hook_allowed() noexcept {
    if (PySys_Audit("sys.setprofile", nullptr) == 0) return true;
    drop_error();
    return false;
}

bool is_hook_allowed(Mode mode) noexcept {
    if (mode == Mode::PythonCalls || is_profile_hook_allowed()) return true;
    note_problem("python_calls_missing",
                 "an audit hook of the program does not allow profile hooks: calls are not recorded");
    return false;
}

void start_profiling(Mode mode) noexcept {
    is_profiling = true;
    if (start_profile_hook(mode >= Mode::WithC)) return;
    note_problem("python_profile_hook",
                 "another profile hook (sys.setprofile, cProfile, ...) is set on a thread: calls of that "
                 "thread are not recorded");
}

bool has_foreign_profile_hook() noexcept {
    for (PyThreadState* state = PyInterpreterState_ThreadHead(PyInterpreterState_Main()); state != nullptr;
         state = PyThreadState_Next(state)) {
        if (state->c_profilefunc != nullptr) return true;
    }
    return false;
}

// The program has switched greenlets. The frame hook has its calls on the C stack, which is swapped with
// them, so the profile hook, which stores its calls, takes over. Calls of `origin`, which was running, stay
// open around those of the others.
void leave_frame_hook(PyObject* origin) noexcept {
    if (is_applying || is_profiling || is_paused || current_mode != Mode::PythonCalls) return;
    const SavedError error;
    is_applying = true;  // audit hooks run
    const bool is_possible = !has_foreign_profile_hook() && is_profile_hook_allowed();
    if (is_possible) {
        PyObject* const frame = PyObject_GetAttrString(origin, "gr_frame");
        pause_frame_hook();
        if (frame != nullptr && PyFrame_Check(frame))
            end_stale_thread_frames(reinterpret_cast<PyFrameObject*>(frame)->f_frame);
        Py_XDECREF(frame);
        start_profiling(current_mode);
    } else {
        follow_greenlets(nullptr);
        note_problem(
            "python_greenlets",
            "the program switches greenlets, and has its own profile hook or does not allow Marey's: "
            "calls of a greenlet may appear inside calls of another");
    }
    is_applying = false;
    if (is_requested) apply_tracer();
}

bool start_hook(Mode mode) noexcept {
    if (mode == Mode::PythonCalls) return start_frame_hook(leave_frame_hook);
    start_profiling(mode);
    return true;
}

// `will_restart`: another hook is started right after.
void stop_hook(bool will_restart) noexcept {
    if (is_profiling) stop_profile_hook();
    is_profiling = false;
    stop_frame_hook(will_restart);  // calls that it adopted at the start may be open
}

// The profile hook stays set when calls into C are not recorded any more: the frame hook would not see the
// ends of open calls.
bool change_hook(Mode mode) noexcept {
    if (is_profiling) {
        change_profile_hook(mode >= Mode::WithC);
    } else if (mode == Mode::PythonCalls) {
        refilter_frame_hook();
    } else if (is_hook_allowed(mode)) {
        pause_frame_hook();
        start_profiling(mode);
    } else {
        refilter_frame_hook();
        return false;
    }
    return true;
}

void pause_hook() noexcept {
    if (!is_profiling) return pause_frame_hook();
    pause_profile_hook();
    stop_frame_hook(false);
}

#else

void check_hook() noexcept {
    if (!is_monitoring_intact()) {
        note_problem("python_calls_missing",
                     "the program has taken over Marey's sys.monitoring tool id: later calls are missing");
    }
}

bool is_hook_allowed(Mode) noexcept {
    return true;  // it is read when the callbacks are registered
}

bool start_hook(Mode mode) noexcept {
    return start_monitoring(mode != Mode::PythonCalls, mode == Mode::WithAllC);
}
void stop_hook(bool) noexcept {
    stop_monitoring();
}
bool change_hook(Mode mode) noexcept {
    change_monitoring(mode != Mode::PythonCalls, mode == Mode::WithAllC);
    return true;
}
void pause_hook() noexcept {
    pause_monitoring();
}

#endif

}  // namespace

void add_tracer() {
    // Set by the start file of `marey run`: calls are recorded when the program begins (program_start.h).
    if (PySys_GetObject("_marey_starts") != nullptr) hold_tracer();
    add_source(std::make_shared<TracerSource>());
}

void end_budget() noexcept {
    note_problem("python_calls_ended", "the call budget is used up: later calls are not recorded");
    if (Py_IsInitialized()) Py_AddPendingCall(apply_pending, nullptr);
}

void hold_tracer() noexcept {
    held.fetch_add(1);
}

void release_tracer() noexcept {
    int count = held.load();
    while (count > 0 && !held.compare_exchange_weak(count, count - 1)) {  // 0: a fork happened in between
    }
    apply_tracer();
}

void check_tracer() noexcept {
    const SavedError error;
    if (current_mode != Mode::Off && !is_paused) check_hook();
    note_open_parts();
}

void prepare_tracer(bool all_c_calls) noexcept {
    if (all_c_calls) requests_all_c.store(true);
    start_ticks.store(source_ticks());
}

namespace {

void apply_once() noexcept {
    const Mode mode = requested_mode.load(std::memory_order_relaxed);
    const bool is_new_filter = renew_call_filter();
    const SavedError error;
    if (mode == current_mode && is_paused == call_filter.is_spent()) {
        if (is_new_filter && mode != Mode::Off && !is_paused) change_hook(mode);
        return;
    }
    if (mode == current_mode && !is_paused) {
        pause_hook();
        is_paused = true;
        return;
    }
    if (mode != Mode::Off && current_mode != Mode::Off && !is_paused) {  // open calls stay open
        start_ticks.store(0);
        if (change_hook(mode)) current_mode = mode;
        return;
    }
    is_paused = false;
    if (is_new_filter) c_function_sites.forget();
    if (current_mode != Mode::Off) {
        stop_gc_ranges();
        stop_hook(mode != Mode::Off);
        start_frames.clear();
        live_calls.clear();
        forget_asyncio();
        current_mode = Mode::Off;
    }
    if (mode == Mode::Off) {
        requests_all_c.store(false);
        forget_modules();
        return;
    }
    if (!claim_code_slot()) {
        note_problem("python_calls_missing",
                     "the interpreter has no free slot for code object data: calls are not recorded");
        return;
    }
    watch_forks();
    if (!is_hook_allowed(mode)) return;
    try {
        start_gc_ranges();  // imports a module, which must not appear in the trace
        live_calls.clear();
        std::optional<CallCostProbe> probe;
        if (!call_filter.is_on && !are_costs_known[static_cast<std::size_t>(mode)]) probe.emplace();
        start_frames.take(start_ticks.exchange(0));
        if (start_hook(mode)) current_mode = mode;
        if (probe && current_mode != Mode::Off) {
            prepare_thread();
            probe->finish();
            are_costs_known[static_cast<std::size_t>(mode)] = true;
        }
        if (current_mode == Mode::Off) stop_gc_ranges();
    } catch (const std::bad_alloc&) {
        note_problem("python_calls_missing", "out of memory: calls are not recorded");
    }
}

}  // namespace

void prepare_thread() noexcept {
#if PY_VERSION_HEX < 0x030C0000
    is_profiling ? prepare_profile_thread() : prepare_frame_thread();
#else
    prepare_monitored_thread();
#endif
}

void apply_tracer() noexcept {
    if (held.load() != 0) return;
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) return;
    is_requested = true;
    if (is_applying) return;
    is_applying = true;
    while (std::exchange(is_requested, false)) apply_once();
    is_applying = false;
    is_tracing = current_mode != Mode::Off && !is_paused;
}

const char* tracer_error(bool c_calls) noexcept {
#if PY_VERSION_HEX < 0x030C0000
    PyThreadState* const state = PyThreadState_Get();
    if (c_calls && !is_profiling && state->c_profilefunc != nullptr)
        return "another profile hook (sys.setprofile, cProfile, ...) is set on this thread: C calls cannot "
               "be "
               "recorded; use c_calls=False to record Python calls only";
#else
    (void)c_calls;
#endif
    if (PyInterpreterState_Get() != PyInterpreterState_Main())
        return "Python calls can be recorded in the main interpreter only";
    return nullptr;
}

Range open_step(std::string_view name) noexcept {
    before_range();
    return SiteRange::step(name);
}

}  // namespace marey::python
