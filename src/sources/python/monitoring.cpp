// monitoring.cpp: ranges from the events of sys.monitoring, through C callables.
#include "sources/python/monitoring.h"

#if PY_VERSION_HEX >= 0x030C0000

#include <atomic>
#include <memory>
#include <vector>

#include <marey/detail/thread_safety.h>

#include "base/backoff.h"
#include "record/source_writer.h"
#include "sources/python/asyncio_tasks.h"
#include "sources/python/c_call_instructions.h"
#include "sources/python/c_function_sites.h"
#include "sources/python/code_sites.h"
#include "sources/python/first_argument.h"
#include "sources/python/greenlets.h"
#include "sources/python/interpreter_frames.h"
#include "sources/python/live_calls.h"
#include "sources/python/module_calls.h"
#include "sources/python/monitoring_tool.h"
#include "sources/python/python_text.h"
#include "sources/python/shadow_stack.h"
#include "sources/python/start_frames.h"

namespace marey::python {

namespace {

/// The calls of one thread. Freed with the thread; others access it only with the GIL.
struct MonitoredThread {
    std::uint64_t period = 0;  ///< the monitoring period of its last event
    std::uint32_t thread = 0;
    ShadowStack stack;
};

// Guarded by the GIL.
MonitoringTool tool;
std::uint64_t period = 0;
bool keeps_call_events = false;  // c_calls "all"
PyObject* disable = nullptr;     // sys.monitoring.DISABLE
CCallInstructions c_call_instructions;
Backoff looks_for_c_calls;  // for code whose call events cannot be switched off yet

std::atomic<std::uint64_t> lost_instructions{0};  // switched off although they have called C functions

// All threads that have one. Threads end without the GIL, hence the lock.
Mutex threads_mutex;
auto& threads MAREY_GUARDED_BY(threads_mutex) =
    *new std::vector<MonitoredThread*>;  // never destroyed: threads may still exist at exit

struct ThreadHolder {
    std::unique_ptr<MonitoredThread> trace;
    ~ThreadHolder() {
        if (trace == nullptr) return;
        if (detail::current_thread->tracer == trace.get()) detail::current_thread->tracer = nullptr;
        forget_greenlets(trace->stack);
        const ScopedLock lock(threads_mutex);
        std::erase(threads, trace.get());
    }
};
thread_local ThreadHolder thread_holder;

[[gnu::noinline]] MonitoredThread* register_thread() noexcept {
    if (!attach_thread()) return nullptr;
    try {
        if (thread_holder.trace == nullptr) {
            thread_holder.trace = std::make_unique<MonitoredThread>();
            const ScopedLock lock(threads_mutex);
            threads.push_back(thread_holder.trace.get());
        }
        MonitoredThread& trace = *thread_holder.trace;
        detail::current_thread->tracer = &trace;
        trace.thread = detail::thread_number();
        const bool is_prepared = watch_greenlets(&trace.stack);
        if (!tool.is_claimed()) return nullptr;  // this has ended tracing
        trace.period = is_prepared ? period : period - 1;
        trace.stack.adopt(start_frames.adopt(PyThreadState_Get()));
        return &trace;
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

// The calls of a thread that has had an event before; otherwise null.
inline MonitoredThread* known_thread(const detail::ThreadState* thread) noexcept {
    auto* const trace = static_cast<MonitoredThread*>(thread->tracer);
    return trace != nullptr && trace->period == period ? trace : nullptr;
}

// The calls of the calling thread; null: it does not record.
MonitoredThread* monitored() noexcept {
    MonitoredThread* const trace = known_thread(detail::current_thread);
    return trace != nullptr ? trace : register_thread();
}

// Events have the code, not the frame: it identifies a call. Returns of unknown calls are ignored.
inline std::uintptr_t python_key(PyObject* code) noexcept {
    return CallKey::python(code);
}

// Reading a module object may let other threads run, which may end tracing.
std::uint32_t site_of_call(PyObject* object, CodeWord word) noexcept {
    if ((word & kCodeModule) == 0) return site_of(word);
    auto* const code = reinterpret_cast<PyCodeObject*>(object);
    return module_site(word, code, marey_first_argument(PyThreadState_Get(), 0, code));
}

// Begins a part of a call that is new (`is_start`) or resumes, awaited by another call or not.
void begin_call_part(CodeWord word, bool is_start, std::uint64_t start, bool is_awaited) noexcept {
    const void* const frame = running_frame();
    const std::uint64_t number = begin_part(frame, is_start, start);
    if (number != 0 && (word & kCodeCoroutine) != 0 && !is_awaited) note_task(generator_of(frame), number);
}

// For PY_THROW (code, offset, exception): whether the generator has never run before.
bool is_throw_at_start(PyObject* const* args) noexcept {
    const auto* const code = reinterpret_cast<PyCodeObject*>(args[0]);
    const long offset = PyLong_Check(args[1]) ? PyLong_AsLong(args[1]) : -1;
    return offset <= code->_co_firsttraceable * 2L;
}

CodeWord word_of(PyObject* object) noexcept {
    auto* const code = reinterpret_cast<PyCodeObject*>(object);
    return call_filter.is_on ? filtered_word(code, PyEval_GetGlobals()) : code_word(code);
}

// The answer to an event: disables the events of code that is excluded by its name, if they may be disabled.
PyObject* answer(CodeWord word, bool may_disable) noexcept {
    const bool disables = may_disable && call_filter.is_on && (word & kCodeExcluded) != 0;
    return Py_NewRef(disables ? disable : Py_None);
}

// Each callback handles the usual case itself, which is never one with a filter, and calls a slower function
// for the rest.

// A call begins (`is_start`), or a part of a call that was suspended.
[[gnu::noinline]] PyObject* start_unusual(PyObject* code, bool is_start, bool may_disable = true) noexcept {
    MonitoredThread* const trace = monitored();
    if (trace == nullptr) Py_RETURN_NONE;
    const CodeWord word = word_of(code);
    if (call_filter.is_on && (word & kCodeExcluded) != 0) return answer(word, may_disable);
    ShadowStack& stack = trace->stack;
    const std::uintptr_t key = python_key(code);
    const bool is_library = (word & kCodeLibrary) != 0;
    const bool is_too_deep = stack.depth() >= call_filter.max_depth;
    if ((word & kCodeSkipped) != 0) {
        stack.skip(key, is_library, true);
    } else if (is_too_deep || (call_filter.folds && is_library && stack.is_in_library())) {
        stack.skip(key, is_library, false, is_too_deep);
    } else {
        const bool is_part = (word & kCodeGenerator) != 0;
        const bool is_awaited = stack.is_in_part();
        const std::uint32_t site = site_of_call(code, word);
        if (trace->period != period) Py_RETURN_NONE;
        const std::uint64_t start =
            stack.open(key | (is_part ? CallKey::kPart : 0), site, Scope::PythonFunction,
                       call_filter.has_lines ? line_of_caller() : -1, is_library);
        if (is_part && start != 0) begin_call_part(word, is_start, start, is_awaited);
    }
    Py_RETURN_NONE;
}

// Also used on a thread that no longer records: its open calls still end. `is_last`: a generator does not
// resume.
[[gnu::noinline]] void end_unusual(std::uintptr_t key, bool is_last) noexcept {
    MonitoredThread* trace = thread_holder.trace.get();
    if (trace == nullptr || trace->period != period) trace = monitored();
    if (trace != nullptr) trace->stack.close(key, [=]() { return EndingPart{running_frame(), is_last}; });
}

[[gnu::noinline]] PyObject* end_unusual(PyObject* code, bool is_last, bool may_disable) noexcept {
    const CodeWord word = call_filter.is_on ? word_of(code) : 0;
    end_unusual(python_key(code), is_last);
    return answer(word, may_disable);
}

inline bool try_end(std::uintptr_t key) noexcept {
    detail::ThreadState* const thread = detail::current_thread;
    MonitoredThread* const trace = known_thread(thread);
    return trace != nullptr && trace->stack.try_close(thread, key);
}

PyObject* on_start(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (count < 1) Py_RETURN_NONE;
    detail::ThreadState* const thread = detail::current_thread;
    MonitoredThread* const trace = known_thread(thread);
    const CodeWord word = known_code(reinterpret_cast<PyCodeObject*>(args[0]));
    if (trace == nullptr || call_filter.is_on || !is_usual(word) ||
        !trace->stack.try_open(thread, python_key(args[0]), site_of(word), Scope::PythonFunction))
        [[unlikely]]
        return start_unusual(args[0], true);
    Py_RETURN_NONE;
}

// A generator resumes.
PyObject* on_resume(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (count < 1) Py_RETURN_NONE;
    detail::ThreadState* const thread = detail::current_thread;
    MonitoredThread* const trace = known_thread(thread);
    const CodeWord word = known_code(reinterpret_cast<PyCodeObject*>(args[0]));
    if (trace == nullptr || call_filter.is_on || !is_usual(word & ~kCodeGenerator))
        return start_unusual(args[0], false);
    const bool is_awaited = trace->stack.is_in_part();
    const std::uint64_t start = trace->stack.try_open(thread, python_key(args[0]) | CallKey::kPart,
                                                      site_of(word), Scope::PythonFunction);
    if (start == 0) return start_unusual(args[0], false);
    begin_call_part(word, false, start, is_awaited);
    Py_RETURN_NONE;
}

// A generator resumes with an exception, perhaps before it has run at all.
PyObject* on_throw(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (count < 2) Py_RETURN_NONE;
    return start_unusual(args[0], is_throw_at_start(args), false);
}

template <bool kMayDisable>
PyObject* on_end(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (count < 1 || try_end(python_key(args[0]))) [[likely]]
        Py_RETURN_NONE;
    return end_unusual(args[0], true, kMayDisable);
}

PyObject* on_yield(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (count < 1) Py_RETURN_NONE;
    detail::ThreadState* const thread = detail::current_thread;
    MonitoredThread* const trace = known_thread(thread);
    const auto suspended = []() { return EndingPart{running_frame(), false}; };
    if (trace == nullptr || !trace->stack.try_close_part(thread, python_key(args[0]), suspended))
        return end_unusual(args[0], false, true);
    Py_RETURN_NONE;
}

bool is_python_function(PyObject* callable) noexcept {
    if (PyFunction_Check(callable)) return true;
    return PyMethod_Check(callable) && PyFunction_Check(PyMethod_GET_FUNCTION(callable));
}

// Returned for a call that is left to the events of the called function: disables events of this instruction.
// That also disables the end events of calls, so not while a call into C from the same code runs on any
// thread: if it is from the same instruction, its end would not be reported.
[[gnu::noinline]] PyObject* after_python_call(PyObject* code, PyObject* offset) noexcept {
    if (!looks_for_c_calls.is_due(code)) Py_RETURN_NONE;
    const std::uintptr_t key = CallKey::c(code);
    {
        const ScopedLock lock(threads_mutex);
        for (const MonitoredThread* const thread : threads) {
            if (thread->period != period || !thread->stack.holds(key)) continue;
            looks_for_c_calls.failed(code);
            Py_RETURN_NONE;
        }
    }
    looks_for_c_calls.succeeded(code);
    if (c_call_instructions.take(code, offset)) lost_instructions.fetch_add(1, std::memory_order_relaxed);
    return Py_NewRef(disable);
}

[[gnu::noinline]] PyObject* call_unusual(PyObject* code, PyObject* offset, PyObject* callable) noexcept {
    MonitoredThread* const trace = monitored();
    if (trace == nullptr) Py_RETURN_NONE;
    const CodeWord caller = word_of(code);
    const std::uint32_t site = (caller & kCodeSkipped) != 0 ? 0 : c_function_sites.site_of_callable(callable);
    if (site != 0) c_call_instructions.note(code, offset);
    const bool is_folded = call_filter.folds && (caller & kCodeLibrary) != 0;
    if (site == 0 || is_folded || trace->stack.is_cut()) {
        trace->stack.skip(CallKey::c(code), false, true);
        Py_RETURN_NONE;
    }
    const int line = call_filter.has_lines ? PyCode_Addr2Line(reinterpret_cast<PyCodeObject*>(code),
                                                              static_cast<int>(PyLong_AsLong(offset)))
                                           : -1;
    trace->stack.open(CallKey::c(code), site, Scope::CFunction, line);
    Py_RETURN_NONE;
}

// code, offset, callable, first argument
PyObject* on_call(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (count < 3) Py_RETURN_NONE;
    PyObject* const callable = args[2];
    if (is_python_function(callable)) {
        if (keeps_call_events) Py_RETURN_NONE;
        return after_python_call(args[0], args[1]);
    }
    detail::ThreadState* const thread = detail::current_thread;
    MonitoredThread* const trace = known_thread(thread);
    const std::uint32_t site = c_function_sites.known_site(callable);
    const CodeWord caller = known_code(reinterpret_cast<PyCodeObject*>(args[0]));
    if (trace == nullptr || call_filter.is_on || site == 0 || (caller & kCodeSkipped) != 0 ||
        !trace->stack.try_open(thread, CallKey::c(args[0]), site, Scope::CFunction)) [[unlikely]]
        return call_unusual(args[0], args[1], callable);
    c_call_instructions.note(args[0], args[1]);
    Py_RETURN_NONE;
}

// The same arguments. Also called for Python functions that are called with unpacked arguments.
PyObject* on_c_end(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (count < 3 || is_python_function(args[2]) || try_end(CallKey::c(args[0]))) Py_RETURN_NONE;
    end_unusual(CallKey::c(args[0]), true);
    Py_RETURN_NONE;
}

using Callback = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t);
PyMethodDef method(const char* name, Callback callback) noexcept {
    return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(callback)), METH_FASTCALL, nullptr};
}

struct Event {
    const char* name;
    PyMethodDef callback;
    bool is_c_event;
    bool is_requested;  ///< events that come with CALL must not be requested
};
Event events[] = {
    {"PY_START", method("on_start", on_start), false, true},
    {"PY_RESUME", method("on_resume", on_resume), false, true},
    {"PY_THROW", method("on_throw", on_throw), false, true},
    {"PY_RETURN", method("on_end", on_end<true>), false, true},
    {"PY_YIELD", method("on_yield", on_yield), false, true},
    {"PY_UNWIND", method("on_unwind", on_end<false>), false, true},
    {"CALL", method("on_call", on_call), true, true},
    {"C_RETURN", method("on_c_end", on_c_end), true, false},
    {"C_RAISE", method("on_c_end", on_c_end), true, false},
};

// Registers the callbacks, and enables their events, also those that an earlier filter has disabled.
void request_events(bool c_calls) noexcept {
    tool.begin_request();
    for (Event& event : events) {
        if (event.is_c_event && !c_calls) continue;
        tool.request(event.name, &event.callback, event.is_requested);
    }
    tool.end_request();
}

}  // namespace

void change_monitoring(bool c_calls, bool all_c_calls) noexcept {
    if (!tool.is_ours()) return;
    c_function_sites.forget();
    {
        const ScopedLock lock(threads_mutex);
        for (MonitoredThread* const thread : threads) {
            thread->stack.forget_filter();
            if (!c_calls) thread->stack.forget_c_calls(thread->thread);
        }
    }
    keeps_call_events = all_c_calls;
    request_events(c_calls);
}

void pause_monitoring() noexcept {
    {
        const ScopedLock lock(threads_mutex);
        for (MonitoredThread* const thread : threads) {
            thread->stack.close_all(thread->thread, true);
        }
    }
    stop_monitoring();
}

bool start_monitoring(bool c_calls, bool all_c_calls) noexcept {
    if (!tool.claim()) {
        note_problem("python_calls_missing", "sys.monitoring has no free tool id: calls are not recorded");
        return false;
    }
    if (disable == nullptr) disable = MonitoringTool::disable_answer();
    ++period;
    keeps_call_events = all_c_calls;
    follow_greenlets([]() noexcept { ++period; });
    c_function_sites.prepare();
    request_events(c_calls);
    return true;
}

void prepare_monitored_thread() noexcept {
    monitored();
}

bool is_monitoring_intact() noexcept {
    return tool.is_ours() && tool.has_event("PY_START");
}

std::uint64_t monitoring_lost_instructions() noexcept {
    return lost_instructions.exchange(0, std::memory_order_relaxed);
}

void monitoring_forked() noexcept {
    // A thread that was ending may have held the lock and been changing the list.
    std::construct_at(&threads_mutex);
    const ScopedLock lock(threads_mutex);
    std::construct_at(&threads);
    try {
        if (thread_holder.trace != nullptr) threads.push_back(thread_holder.trace.get());
    } catch (const std::bad_alloc&) {
    }
}

void stop_monitoring() noexcept {
    if (tool.switch_off())
        for (const Event& event : events) tool.forget(event.name);
    tool.release();
    ++period;
    follow_greenlets(nullptr);
    c_function_sites.clear();
    c_call_instructions.clear();
    const ScopedLock lock(threads_mutex);
    for (MonitoredThread* const thread : threads) thread->stack.close_all(thread->thread);
}

}  // namespace marey::python

#endif
