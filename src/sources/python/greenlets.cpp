// greenlets.cpp: at a switch, stores the calls of one greenlet and restores those of another.
#include "sources/python/greenlets.h"

#include <map>
#include <utility>

#include "sources/python/python_text.h"

namespace marey::python {

namespace {

// Guarded by the GIL.
void (*expect_greenlets)() noexcept = nullptr;  // null: not tracing
void (*cannot_follow_greenlets)(PyObject* origin) noexcept = nullptr;
std::uint64_t tracing_period = 0;  // counts starts of tracing: calls stored in an earlier period are invalid

/// The calls of a greenlet that is not running. The reference to it is weak, since its address may be reused.
struct SavedStack {
    Ref greenlet;
    ShadowStack::Suspended calls;
    ~SavedStack() { calls.forget(); }
};

struct ThreadGreenlets {
    ShadowStack* stack = nullptr;  ///< null: the calls are not known
    std::uint64_t period = 0;      ///< the tracing period in which it was set
    std::map<PyObject*, SavedStack> aside;
};
// Never destroyed: a thread ends without the GIL, and then holds almost nothing.
thread_local ThreadGreenlets* thread_greenlets = nullptr;

// Whether a weak reference still refers to this object.
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

// Stores the calls of a greenlet that stops running.
void save_stack(PyObject* greenlet) {
    thread_greenlets->aside.erase(greenlet);
    ShadowStack::Suspended calls = thread_greenlets->stack->suspend();
    if (calls.size() == 0) return;
    // Removes those of deleted greenlets when the number reaches a power of two.
    if (thread_greenlets->aside.size() >= 64 &&
        (thread_greenlets->aside.size() & (thread_greenlets->aside.size() - 1)) == 0)
        std::erase_if(thread_greenlets->aside,
                      [](const auto& each) { return !refers_to(each.second.greenlet.get(), each.first); });
    Ref reference(PyWeakref_NewRef(greenlet, nullptr));
    if (!reference) return;
    SavedStack& aside = thread_greenlets->aside[greenlet];
    aside.greenlet = std::move(reference);
    aside.calls = std::move(calls);
}

void switch_calls(PyObject* origin, PyObject* target) noexcept {
    if (thread_greenlets == nullptr || thread_greenlets->period != tracing_period ||
        expect_greenlets == nullptr)
        return;
    const SavedError error;
    if (thread_greenlets->stack == nullptr) {
        if (cannot_follow_greenlets != nullptr) cannot_follow_greenlets(origin);
        return;
    }
    try {
        save_stack(origin);
        const auto found = thread_greenlets->aside.find(target);
        if (found == thread_greenlets->aside.end()) return;
        if (refers_to(found->second.greenlet.get(), target))
            thread_greenlets->stack->resume(std::exchange(found->second.calls, {}));
        thread_greenlets->aside.erase(found);
    } catch (const std::bad_alloc&) {  // then some parts are missing
    }
}

// Called as callback(event, (origin, target)); `previous` is the callback that was set before, or None.
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
    const Ref previous(PyObject_CallMethod(module, "gettrace", nullptr));
    if (!previous || is_ours(previous.get())) return;
    const Ref callback(PyCFunction_New(&switch_method, previous.get()));
    if (callback) const Ref result(PyObject_CallMethod(module, "settrace", "O", callback.get()));
}

}  // namespace

void follow_greenlets(void (*expect)() noexcept, void (*cannot_follow)(PyObject* origin) noexcept) noexcept {
    expect_greenlets = expect;
    cannot_follow_greenlets = cannot_follow;
    ++tracing_period;
}

bool watch_greenlets(ShadowStack* stack) noexcept {
    const SavedError error;
    // Reading attributes may run any code, which may remove the module.
    const Ref module = Ref::borrow(PyDict_GetItemString(PyImport_GetModuleDict(), "greenlet"));
    if (!module || !PyModule_Check(module.get())) return true;
    if (!PyObject_HasAttrString(module.get(), "gettrace") ||
        !PyObject_HasAttrString(module.get(), "settrace")) {
        // Partly imported, or another module with that name.
        return attribute(attribute(module.get(), "__spec__").get(), "_initializing").get() != Py_True;
    }
    if (thread_greenlets == nullptr) thread_greenlets = new (std::nothrow) ThreadGreenlets;
    if (thread_greenlets == nullptr) return true;
    if (thread_greenlets->period != tracing_period) thread_greenlets->aside.clear();
    thread_greenlets->period = tracing_period;
    thread_greenlets->stack = stack;
    chain(module.get());
    return true;
}

void forget_greenlets(const ShadowStack& stack) noexcept {
    if (thread_greenlets == nullptr || thread_greenlets->stack != &stack) return;
    thread_greenlets->stack = nullptr;
}

void note_file_for_greenlets(std::string_view file) noexcept {
    if (expect_greenlets != nullptr && file.ends_with("/greenlet/__init__.py")) expect_greenlets();
}

}  // namespace marey::python
