// tracer.cpp: chooses the hook, and puts it on and off with the sessions.
#include "sources/python/tracer.h"

#include <atomic>
#include <memory>
#include <string>

#include "record/source_writer.h"
#include "sources/python/code_sites.h"
#include "sources/python/frame_hook.h"
#include "sources/python/module_calls.h"
#include "sources/python/monitoring.h"
#include "sources/python/profile_hook.h"
#include "sources/python/python_text.h"
#include "sources/python/start_frames.h"

namespace kymo::python {

namespace {

enum class Mode : std::uint8_t {
    Off = 0,
    PythonCalls = 1,
    AlsoC = 2,     ///< calls into C too
    AlsoAllC = 3,  ///< those of call sites that call Python functions as well too
};

// What the sessions ask for. Written by whoever starts or stops one, read with the GIL held.
std::atomic<Mode> wanted_mode{Mode::Off};
std::atomic<bool> wants_all{false};
std::atomic<std::uint64_t> start_ticks{0};  // of the session that is starting; 0: not known yet

Mode present_mode = Mode::Off;  // guarded by the GIL

// Sessions that are being started by somebody who will call apply_tracer() when all is ready.
std::atomic<int> held{0};

int apply_pending(void*) {
    if (held.load() == 0) apply_tracer();
    return 0;
}

class TracerSource final : public Source {
  public:
    const char* name() const noexcept override { return "python"; }
    void needs_changed(const RecordingNeeds& needs) noexcept override {
        const ScopeSet scopes = ScopeSet::from_bits(needs.scopes);
        Mode mode = Mode::Off;
        if ((needs.option_bits & detail::kOptionStacks) != 0) {
            if (scopes.contains(Scope::PythonFunction)) mode = Mode::PythonCalls;
            if (scopes.contains(Scope::CFunction)) mode = wants_all.load() ? Mode::AlsoAllC : Mode::AlsoC;
        }
        want_module_children((needs.option_bits & detail::kOptionModules) != 0);
        if (wanted_mode.exchange(mode) == mode) return;
        if (start_ticks.load() == 0) start_ticks.store(source_ticks());
        // We may not wait for the GIL here: the interpreter is asked to come by, unless somebody with the GIL
        // does it first.
        if (Py_IsInitialized()) Py_AddPendingCall(apply_pending, nullptr);
    }
    void flush(std::uint64_t) noexcept override {
#if PY_VERSION_HEX < 0x030C0000
        if (const std::uint64_t gaps = frame_hook_gaps()) {
            note_problem("python_calls_missing",
                         "calls were not recorded " + std::to_string(gaps) +
                             " times, while more than half of a thread's C stack was in use");
        }
#endif
    }
    void forked() noexcept override {
        needs_changed({});
    }
};

#if PY_VERSION_HEX < 0x030C0000

bool start_hook(Mode mode) noexcept {
    if (mode == Mode::PythonCalls) return start_frame_hook();
    if (start_profile_hook()) return true;
    note_problem("python_profile_hook",
                 "another profile hook (sys.setprofile, cProfile, ...) is set on a thread; calls of that "
                 "thread are not "
                 "recorded");
    return true;
}

void stop_hook(Mode mode) noexcept {
    if (mode == Mode::PythonCalls) {
        stop_frame_hook();
    } else {
        stop_profile_hook();
    }
}

#else

bool start_hook(Mode mode) noexcept {
    return start_monitoring(mode != Mode::PythonCalls, mode == Mode::AlsoAllC);
}
void stop_hook(Mode) noexcept {
    stop_monitoring();
}

#endif

}  // namespace

void add_tracer() {
    add_source(std::make_shared<TracerSource>());
}

void hold_tracer() noexcept {
    held.fetch_add(1);
}

void release_tracer() noexcept {
    held.fetch_sub(1);
    apply_tracer();
}

void prepare_tracer(bool all_c_calls) noexcept {
    if (all_c_calls) wants_all.store(true);
    start_ticks.store(source_ticks());
}

void apply_tracer() noexcept {
    if (held.load() != 0) return;
    const Mode mode = wanted_mode.load(std::memory_order_relaxed);
    if (mode == present_mode) return;
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) return;
    const KeptError error;
    if (present_mode != Mode::Off) {
        stop_hook(present_mode);
        start_frames.clear();
        present_mode = Mode::Off;
    }
    if (mode == Mode::Off) {
        wants_all.store(false);
        forget_modules();
        return;
    }
    if (!claim_code_slot()) {
        note_problem("python_calls_missing", "the interpreter has no slot left for the names of code");
        return;
    }
    try {
        start_frames.take(start_ticks.exchange(0));
        if (start_hook(mode)) present_mode = mode;
    } catch (const std::bad_alloc&) {
        note_problem("python_calls_missing", "no memory");
    }
}

const char* tracer_obstacle(bool c_calls) noexcept {
#if PY_VERSION_HEX < 0x030C0000
    PyThreadState* const state = PyThreadState_Get();
    if (c_calls && present_mode < Mode::AlsoC && state->c_profilefunc != nullptr)
        return "another profile hook (sys.setprofile, cProfile, ...) is set on this thread: Python calls "
               "cannot be "
               "recorded with C calls beside it; c_calls=False can";
#else
    (void)c_calls;
#endif
    if (PyInterpreterState_Get() != PyInterpreterState_Main())
        return "Python calls are recorded in the main interpreter only";
    return nullptr;
}

}  // namespace kymo::python
