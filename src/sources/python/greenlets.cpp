// greenlets.cpp: at a switch the calls of one greenlet go aside and those of another come back.
#include "sources/python/greenlets.h"

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "sources/python/python_text.h"

namespace marey::python {

namespace {

// Guarded by the GIL.
void (*expect_greenlets)() noexcept = nullptr;  // null: nobody traces
void (*cannot_follow_greenlets)(PyObject* origin) noexcept = nullptr;
std::uint64_t tracing_period = 0;  // counts starts: what was put aside in another is void

/// The calls of a greenlet that does not run. The reference to it is weak: its address may be another's
/// later.
struct SavedStack {
    PyObject* greenlet = nullptr;
    std::vector<SuspendedCall> calls;
    FilteredStack::Suspended filtered;
    ~SavedStack() { Py_XDECREF(greenlet); }
};

struct ThreadGreenlets {
    ShadowStack* stack = nullptr;  ///< null, as the next: the calls are not known
    FilteredStack* filtered = nullptr;
    std::uint64_t period = 0;  ///< the start of tracing in which these were given
    std::map<PyObject*, SavedStack> aside;
};
// Never destroyed: a thread ends without the GIL, and holds next to nothing by then.
thread_local ThreadGreenlets* own = nullptr;

// Whether a weak reference still leads to this object.
bool refers_to(PyObject* reference, const PyObject* object) noexcept {
#if PY_VERSION_HEX >= 0x030D0000
    PyObject* found = nullptr;
    PyWeakref_GetRef(reference, &found);
    Py_XDECREF(found);
    return found == object;
#else
    return PyWeakref_GetObject(reference) == object;
#endif
}

// The calls of a greenlet that stops running.
void save_stack(PyObject* greenlet) {
    own->aside.erase(greenlet);
    // What has begun last ends first: with a filter, or without.
    FilteredStack::Suspended filtered;
    if (call_filter.is_on) filtered = own->filtered->suspend();
    std::vector<SuspendedCall> calls = own->stack->suspend();
    if (!call_filter.is_on) filtered = own->filtered->suspend();
    if (calls.empty() && filtered.is_empty()) return;
    // Those of greenlets that are gone go with the next of many.
    if (own->aside.size() >= 64 && (own->aside.size() & (own->aside.size() - 1)) == 0)
        std::erase_if(own->aside,
                      [](const auto& each) { return !refers_to(each.second.greenlet, each.first); });
    PyObject* const reference = PyWeakref_NewRef(greenlet, nullptr);
    if (reference == nullptr) return PyErr_Clear();
    SavedStack& aside = own->aside[greenlet];
    aside.greenlet = reference;
    aside.calls = std::move(calls);
    aside.filtered = std::move(filtered);
}

// Those of one that runs again.
void restore_stack(const SavedStack& aside) noexcept {
    if (!call_filter.is_on) own->filtered->resume(aside.filtered);
    own->stack->resume(aside.calls);
    if (call_filter.is_on) own->filtered->resume(aside.filtered);
}

void switch_calls(PyObject* origin, PyObject* target) noexcept {
    if (own == nullptr || own->period != tracing_period || expect_greenlets == nullptr) return;
    const SavedError error;
    if (own->stack == nullptr) {
        if (cannot_follow_greenlets != nullptr) cannot_follow_greenlets(origin);
        return;
    }
    try {
        save_stack(origin);
        const auto found = own->aside.find(target);
        if (found == own->aside.end()) return;
        if (refers_to(found->second.greenlet, target)) restore_stack(found->second);
        own->aside.erase(found);
    } catch (const std::bad_alloc&) {  // then some stretches are missing
    }
}

// Called as callback(event, (origin, target)); `previous` is the callback that was there before, or None.
PyObject* on_switch(PyObject* previous, PyObject* const* args, Py_ssize_t count) {
    if (count == 2 && PyTuple_Check(args[1]) && PyTuple_GET_SIZE(args[1]) == 2)
        switch_calls(PyTuple_GET_ITEM(args[1], 0), PyTuple_GET_ITEM(args[1], 1));
    if (previous == Py_None) Py_RETURN_NONE;
    return PyObject_Vectorcall(previous, args, static_cast<std::size_t>(count), nullptr);
}

PyMethodDef switch_method = {"on_switch", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(on_switch)),
                             METH_FASTCALL, nullptr};

bool is_ours(PyObject* callback) noexcept {
    return PyCFunction_Check(callback) &&
           reinterpret_cast<PyCFunctionObject*>(callback)->m_ml == &switch_method;
}

void chain(PyObject* module) noexcept {
    PyObject* const previous = PyObject_CallMethod(module, "gettrace", nullptr);
    if (previous != nullptr && !is_ours(previous)) {
        PyObject* const callback = PyCFunction_New(&switch_method, previous);
        PyObject* const result =
            callback != nullptr ? PyObject_CallMethod(module, "settrace", "O", callback) : nullptr;
        Py_XDECREF(result);
        Py_XDECREF(callback);
    }
    Py_XDECREF(previous);
}

}  // namespace

void follow_greenlets(void (*expect)() noexcept, void (*cannot_follow)(PyObject* origin) noexcept) noexcept {
    expect_greenlets = expect;
    cannot_follow_greenlets = cannot_follow;
    ++tracing_period;
}

bool watch_greenlets(ShadowStack* stack, FilteredStack* filtered) noexcept {
    const SavedError error;
    PyObject* const found = PyDict_GetItemString(PyImport_GetModuleDict(), "greenlet");  // borrowed
    if (found == nullptr || !PyModule_Check(found)) return true;
    // What is asked may run anything: that may drop the module.
    const std::unique_ptr<PyObject, void (*)(PyObject*)> held(Py_NewRef(found),
                                                              [](PyObject* object) { Py_DECREF(object); });
    PyObject* const module = held.get();
    if (!PyObject_HasAttrString(module, "gettrace") || !PyObject_HasAttrString(module, "settrace")) {
        // Half imported, or another module of that name.
        PyObject* const spec = PyObject_GetAttrString(module, "__spec__");
        PyObject* const state = spec != nullptr ? PyObject_GetAttrString(spec, "_initializing") : nullptr;
        const bool is_coming = state == Py_True;
        Py_XDECREF(state);
        Py_XDECREF(spec);
        return !is_coming;
    }
    if (own == nullptr) own = new (std::nothrow) ThreadGreenlets;
    if (own == nullptr) return true;
    if (own->period != tracing_period) own->aside.clear();
    own->period = tracing_period;
    own->stack = stack;
    own->filtered = filtered;
    chain(module);
    return true;
}

void forget_greenlets(const ShadowStack& stack) noexcept {
    if (own == nullptr || own->stack != &stack) return;
    own->stack = nullptr;
    own->filtered = nullptr;
}

void note_file_for_greenlets(std::string_view file) noexcept {
    if (expect_greenlets != nullptr && file.ends_with("/greenlet/__init__.py")) expect_greenlets();
}

}  // namespace marey::python
