// monitoring.cpp: ranges from the events of sys.monitoring, through C callables.
#include "sources/python/monitoring.h"

#if PY_VERSION_HEX >= 0x030C0000

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "record/source_writer.h"
#include "sources/python/c_function_sites.h"
#include "sources/python/code_sites.h"
#include "sources/python/first_argument.h"
#include "sources/python/module_calls.h"
#include "sources/python/python_text.h"
#include "sources/python/shadow_stack.h"
#include "sources/python/start_frames.h"

namespace kymo::python {

namespace {

/// The calls of one thread. Goes with the thread; others touch it only with the GIL held.
struct MonitoredThread {
    ShadowStack stack;
    std::uint32_t thread = 0;
    std::uint64_t period = 0;  ///< the start of monitoring that it has seen
};

// Guarded by the GIL.
int tool = -1;
std::uint64_t period = 0;
bool keeps_call_events = false;  // c_calls "all"
PyObject* disable = nullptr;     // sys.monitoring.DISABLE

// Every thread that has one. Threads leave without the GIL, hence the lock.
std::mutex threads_mutex;
std::vector<MonitoredThread*> threads;

struct OwnThread {
    std::unique_ptr<MonitoredThread> trace;
    ~OwnThread() {
        if (trace == nullptr) return;
        if (detail::current_thread->tracer == trace.get()) detail::current_thread->tracer = nullptr;
        std::lock_guard lock(threads_mutex);
        std::erase(threads, trace.get());
    }
};
thread_local OwnThread own_thread;

[[gnu::noinline]] MonitoredThread* meet() noexcept {
    if (!attach_thread()) return nullptr;
    try {
        if (own_thread.trace == nullptr) {
            own_thread.trace = std::make_unique<MonitoredThread>();
            std::lock_guard lock(threads_mutex);
            threads.push_back(own_thread.trace.get());
        }
        MonitoredThread& trace = *own_thread.trace;
        detail::current_thread->tracer = &trace;
        trace.thread = detail::thread_number();
        trace.period = period;
        trace.stack.adopt(start_frames.adopt(PyThreadState_Get()));
        return &trace;
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

// The calling thread's calls; null: it does not record.
inline MonitoredThread* monitored() noexcept {
    detail::ThreadState* const thread = detail::current_thread;
    if (detail::load_relaxed(thread->armed) == 0) return nullptr;
    auto* const trace = static_cast<MonitoredThread*>(thread->tracer);
    return trace != nullptr && trace->period == period ? trace : meet();
}

// Events say the code, not the frame: a call is known by its code. Returns of calls that are not there are
// left alone.
inline std::uintptr_t python_key(PyObject* code) noexcept {
    return ShadowStack::python_key(code);
}

// A call that is not recorded, or one of a module.
[[gnu::noinline]] void open_unusual(MonitoredThread* trace, PyObject* object, CodeWord word) noexcept {
    if ((word & kCodeSkipped) != 0) return trace->stack.skip(python_key(object));
    auto* const code = reinterpret_cast<PyCodeObject*>(object);
    const std::uint32_t site = module_site(word, code, kymo_first_argument(PyThreadState_Get(), 0, code));
    if (trace->period != period) return;  // meanwhile another thread has ended tracing
    trace->stack.open(python_key(object), site, Scope::PythonFunction);
}

PyObject* on_start(PyObject*, PyObject* const* args, Py_ssize_t count) {
    MonitoredThread* const trace = count >= 1 ? monitored() : nullptr;
    if (trace == nullptr) Py_RETURN_NONE;
    const CodeWord word = code_word(reinterpret_cast<PyCodeObject*>(args[0]));
    if ((word & (kCodeSkipped | kCodeModule)) != 0) [[unlikely]]
        open_unusual(trace, args[0], word);
    else
        trace->stack.open(python_key(args[0]), site_of(word), Scope::PythonFunction);
    Py_RETURN_NONE;
}

PyObject* on_end(PyObject*, PyObject* const* args, Py_ssize_t count) {
    MonitoredThread* const trace = count >= 1 ? monitored() : nullptr;
    if (trace != nullptr) trace->stack.close(python_key(args[0]));
    Py_RETURN_NONE;
}

bool is_python_function(PyObject* callable) noexcept {
    if (PyFunction_Check(callable)) return true;
    return PyMethod_Check(callable) && PyFunction_Check(PyMethod_GET_FUNCTION(callable));
}

// code, offset, callable, first argument
PyObject* on_call(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (count < 3) Py_RETURN_NONE;
    if (is_python_function(args[2])) return Py_NewRef(keeps_call_events ? Py_None : disable);
    MonitoredThread* const trace = monitored();
    if (trace == nullptr) Py_RETURN_NONE;
    // Classes made in Python: what counts are their methods.
    const bool is_python_class =
        PyType_Check(args[2]) &&
        PyType_HasFeature(reinterpret_cast<PyTypeObject*>(args[2]), Py_TPFLAGS_HEAPTYPE);
    const std::uint32_t site = is_python_class ? 0 : c_function_sites.site_of_callable(args[2]);
    if (site == 0) [[unlikely]]
        trace->stack.skip(ShadowStack::c_key(args[0]));
    else
        trace->stack.open(ShadowStack::c_key(args[0]), site, Scope::CFunction);
    Py_RETURN_NONE;
}

PyObject* on_c_end(PyObject*, PyObject* const* args, Py_ssize_t count) {
    MonitoredThread* const trace = count >= 1 ? monitored() : nullptr;
    if (trace != nullptr) trace->stack.close(ShadowStack::c_key(args[0]));
    Py_RETURN_NONE;
}

PyMethodDef start_method = {"on_start", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(on_start)),
                            METH_FASTCALL, nullptr};
PyMethodDef end_method = {"on_end", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(on_end)),
                          METH_FASTCALL, nullptr};
PyMethodDef call_method = {"on_call", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(on_call)),
                           METH_FASTCALL, nullptr};
PyMethodDef c_end_method = {"on_c_end", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(on_c_end)),
                            METH_FASTCALL, nullptr};

struct Event {
    const char* name;
    PyMethodDef* method;
    bool is_of_c;
    bool is_asked_for;  ///< those that come with CALL are not to be asked for
};
const Event events[] = {
    {"PY_START", &start_method, false, true}, {"PY_RESUME", &start_method, false, true},
    {"PY_THROW", &start_method, false, true}, {"PY_RETURN", &end_method, false, true},
    {"PY_YIELD", &end_method, false, true},   {"PY_UNWIND", &end_method, false, true},
    {"CALL", &call_method, true, true},       {"C_RETURN", &c_end_method, true, false},
    {"C_RAISE", &c_end_method, true, false},
};

// A new reference to sys.monitoring; null with the error cleared.
PyObject* monitoring_module() noexcept {
    PyObject* const module = PySys_GetObject("monitoring");  // borrowed
    return Py_XNewRef(module);
}

bool call(PyObject* module, const char* name, const char* format, ...) noexcept {
    va_list values;
    va_start(values, format);
    PyObject* const arguments = Py_VaBuildValue(format, values);
    va_end(values);
    PyObject* const function = arguments != nullptr ? PyObject_GetAttrString(module, name) : nullptr;
    PyObject* const result = function != nullptr ? PyObject_CallObject(function, arguments) : nullptr;
    const bool is_done = result != nullptr;
    Py_XDECREF(result);
    Py_XDECREF(function);
    Py_XDECREF(arguments);
    PyErr_Clear();
    return is_done;
}

long event_bit(PyObject* module, const char* name) noexcept {
    PyObject* const names = PyObject_GetAttrString(module, "events");
    PyObject* const value = names != nullptr ? PyObject_GetAttrString(names, name) : nullptr;
    const long bit = value != nullptr ? PyLong_AsLong(value) : 0;
    Py_XDECREF(value);
    Py_XDECREF(names);
    PyErr_Clear();
    return bit > 0 ? bit : 0;
}

bool claim_tool(PyObject* module) noexcept {
    for (const int id : {3, 4, 2}) {
        if (!call(module, "use_tool_id", "(is)", id, "kymo")) continue;
        tool = id;
        return true;
    }
    return false;
}

}  // namespace

bool start_monitoring(bool c_calls, bool all_c_calls) noexcept {
    PyObject* const module = monitoring_module();
    if (module == nullptr || !claim_tool(module)) {
        Py_XDECREF(module);
        note_problem("python_calls_missing", "no tool id of sys.monitoring is free: calls are not recorded");
        return false;
    }
    if (disable == nullptr) disable = PyObject_GetAttrString(module, "DISABLE");
    if (disable == nullptr) disable = Py_NewRef(Py_None);
    PyErr_Clear();
    ++period;
    keeps_call_events = all_c_calls;
    long asked = 0;
    for (const Event& event : events) {
        if (event.is_of_c && !c_calls) continue;
        const long bit = event_bit(module, event.name);
        PyObject* const callback = PyCFunction_New(event.method, nullptr);
        if (callback == nullptr || bit == 0) {
            PyErr_Clear();
            continue;
        }
        call(module, "register_callback", "(ilN)", tool, bit, callback);
        if (event.is_asked_for) asked |= bit;
    }
    call(module, "set_events", "(il)", tool, asked);
    call(module, "restart_events", "()");
    Py_DECREF(module);
    return true;
}

void stop_monitoring() noexcept {
    PyObject* const module = monitoring_module();
    if (module != nullptr && tool >= 0) {
        call(module, "set_events", "(ii)", tool, 0);
        for (const Event& event : events) {
            if (const long bit = event_bit(module, event.name))
                call(module, "register_callback", "(ilO)", tool, bit, Py_None);
        }
        call(module, "free_tool_id", "(i)", tool);
    }
    Py_XDECREF(module);
    tool = -1;
    ++period;
    c_function_sites.clear();
    std::lock_guard lock(threads_mutex);
    for (MonitoredThread* const thread : threads) thread->stack.close_all(thread->thread);
}

}  // namespace kymo::python

#endif
