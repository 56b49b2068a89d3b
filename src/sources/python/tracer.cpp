// tracer.cpp: selects the hook, and sets and removes it with the sessions.
#include "sources/python/tracer.h"

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
#include "sources/python/gc_ranges.h"
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

/// The requests of sessions, and the hook that is set. Applying a request may run Python code, and so a
/// pending call or another thread that applies too: that is done when the first one has finished.
class TracerState {
  public:
    // -- any thread --
    /// Tells what the running sessions need. False: nothing has to be applied.
    bool request(Mode mode, bool has_filters) noexcept {
        if (requested_.exchange(mode) == mode && !has_filters) return false;
        if (start_ticks_.load() == 0) start_ticks_.store(source_ticks());
        return true;
    }
    Mode requested() const noexcept { return requested_.load(std::memory_order_relaxed); }
    Mode c_mode() const noexcept { return is_all_c_.load() ? Mode::WithAllC : Mode::WithC; }
    void prepare_start(bool all_c_calls) noexcept {
        if (all_c_calls) is_all_c_.store(true);
        start_ticks_.store(source_ticks());
    }
    std::uint64_t take_start_ticks() noexcept { return start_ticks_.exchange(0); }
    /// While held, nothing is applied: callers start sessions, and apply when everything is ready.
    void hold() noexcept { held_.fetch_add(1); }
    void release() noexcept {
        int count = held_.load();
        while (count > 0 && !held_.compare_exchange_weak(count, count - 1)) {  // 0: a fork in between
        }
    }
    bool is_held() const noexcept { return held_.load() != 0; }
    /// In the child of a fork, where no session runs.
    void forked() noexcept {
        requested_.store(Mode::Off);
        is_all_c_.store(false);
        start_ticks_.store(0);
        held_.store(0);
    }

    // -- with the GIL --
    Mode mode() const noexcept { return mode_; }
    bool is_off() const noexcept { return mode_ == Mode::Off; }
    /// The budget is spent, and the hook removed.
    bool is_paused() const noexcept { return is_paused_; }
    bool is_recording() const noexcept { return !is_off() && !is_paused_; }
    bool is_applying() const noexcept { return is_applying_; }

    void started(Mode mode) noexcept { mode_ = mode; }
    void changed(Mode mode) noexcept { mode_ = mode; }
    void paused() noexcept { is_paused_ = true; }
    void resumed() noexcept { is_paused_ = false; }
    void stopped() noexcept { mode_ = Mode::Off; }
    void forget_all_c() noexcept { is_all_c_.store(false); }

    /// Calls apply() until no request is left. False: somebody does so already.
    bool apply_requests(auto apply) noexcept {
        is_pending_ = true;
        if (is_applying_) return false;
        is_applying_ = true;
        while (std::exchange(is_pending_, false)) apply();
        is_applying_ = false;
        return true;
    }
    /// Around a change that no session requested. True: requests came in between.
    void begin_change() noexcept { is_applying_ = true; }
    bool end_change() noexcept {
        is_applying_ = false;
        return is_pending_;
    }

    bool knows_costs(Mode mode) const noexcept { return has_costs_[static_cast<std::size_t>(mode)]; }
    void learned_costs(Mode mode) noexcept { has_costs_[static_cast<std::size_t>(mode)] = true; }

  private:
    std::atomic<Mode> requested_{Mode::Off};
    std::atomic<bool> is_all_c_{false};
    std::atomic<std::uint64_t> start_ticks_{0};  ///< of the session that is starting; 0: not known yet
    std::atomic<int> held_{0};
    Mode mode_ = Mode::Off;
    bool is_paused_ = false;
    bool is_pending_ = false;
    bool is_applying_ = false;
    bool has_costs_[4] = {};  ///< by mode
};

constinit TracerState tracer_state;

int apply_pending(void*) {
    if (!tracer_state.is_held()) apply_tracer();
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
            if (scopes.contains(Scope::CFunction)) mode = tracer_state.c_mode();
        }
        set_module_children((needs.option_bits & detail::kOptionModules) != 0);
        set_requested_calls(needs.calls);
        if (!tracer_state.request(mode, !needs.calls.empty())) return;
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
        tracer_state.forked();
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
    const Ref watch = attribute(Ref(PyImport_ImportModule("os")).get(), "register_at_fork");
    const Ref when(Py_BuildValue("{sN}", "after_in_child", PyCFunction_New(&unhook_child_method, nullptr)));
    const Ref none(PyTuple_New(0));
    if (watch && when && none) is_done = bool(Ref(PyObject_Call(watch.get(), none.get(), when.get())));
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
    if (tracer_state.is_applying() || is_profiling || tracer_state.is_paused() ||
        tracer_state.mode() != Mode::PythonCalls)
        return;
    const SavedError error;
    tracer_state.begin_change();  // audit hooks run
    const bool is_possible = !has_foreign_profile_hook() && is_profile_hook_allowed();
    if (is_possible) {
        const Ref frame = attribute(origin, "gr_frame");
        pause_frame_hook();
        if (frame && PyFrame_Check(frame.get()))
            end_stale_thread_frames(reinterpret_cast<PyFrameObject*>(frame.get())->f_frame);
        start_profiling(tracer_state.mode());
    } else {
        follow_greenlets(nullptr);
        note_problem(
            "python_greenlets",
            "the program switches greenlets, and has its own profile hook or does not allow Marey's: "
            "calls of a greenlet may appear inside calls of another");
    }
    if (tracer_state.end_change()) apply_tracer();
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
    } else if (mode != Mode::PythonCalls) {
        if (!is_hook_allowed(mode)) return false;
        pause_frame_hook();
        start_profiling(mode);
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

void apply_once() noexcept {
    const Mode mode = tracer_state.requested();
    const bool is_new_filter = renew_call_filter();
    const SavedError error;
    if (mode == tracer_state.mode() && tracer_state.is_paused() == call_filter.is_spent()) {
        if (is_new_filter && tracer_state.is_recording()) change_hook(mode);
        return;
    }
    if (mode == tracer_state.mode() && !tracer_state.is_paused()) {
        pause_hook();
        tracer_state.paused();
        return;
    }
    if (mode != Mode::Off && tracer_state.is_recording()) {  // open calls stay open
        tracer_state.take_start_ticks();
        if (change_hook(mode)) tracer_state.changed(mode);
        return;
    }
    tracer_state.resumed();
    if (is_new_filter) c_function_sites.forget();
    if (!tracer_state.is_off()) {
        stop_gc_ranges();
        stop_hook(mode != Mode::Off);
        start_frames.clear();
        live_calls.clear();
        forget_asyncio();
        tracer_state.stopped();
    }
    if (mode == Mode::Off) {
        tracer_state.forget_all_c();
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
        if (!call_filter.is_on && !tracer_state.knows_costs(mode)) probe.emplace();
        start_frames.take(tracer_state.take_start_ticks());
        if (start_hook(mode)) tracer_state.started(mode);
        if (probe && !tracer_state.is_off()) {
            prepare_thread();
            probe->finish();
            tracer_state.learned_costs(mode);
        }
        if (tracer_state.is_off()) stop_gc_ranges();
    } catch (const std::bad_alloc&) {
        note_problem("python_calls_missing", "out of memory: calls are not recorded");
    }
}

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
    tracer_state.hold();
}

void release_tracer() noexcept {
    tracer_state.release();
    apply_tracer();
}

void check_tracer() noexcept {
    const SavedError error;
    if (tracer_state.is_recording()) check_hook();
    note_open_parts();
}

void prepare_tracer(bool all_c_calls) noexcept {
    tracer_state.prepare_start(all_c_calls);
}

void prepare_thread() noexcept {
#if PY_VERSION_HEX < 0x030C0000
    is_profiling ? prepare_profile_thread() : prepare_frame_thread();
#else
    prepare_monitored_thread();
#endif
}

void apply_tracer() noexcept {
    if (tracer_state.is_held()) return;
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) return;
    if (tracer_state.apply_requests(apply_once)) is_tracing = tracer_state.is_recording();
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
