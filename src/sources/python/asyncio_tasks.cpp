// asyncio_tasks.cpp: finds the running task through the C part of asyncio, which other loops use too.
#include "sources/python/asyncio_tasks.h"

#include "record/source_writer.h"
#include "sources/python/python_text.h"

namespace marey::python {

namespace {

/// The asyncio functions in use, once asyncio is imported. Holds references: needs the GIL.
struct Asyncio {
    Ref running_loop;   ///< _get_running_loop
    Ref current_tasks;  ///< loop -> task; null: use current_task
    Ref current_task;   ///< current_task(loop)
    Ref task_type;
    Ref get_coro;  ///< of that type, so that no override is called
    Ref get_name;

    bool is_whole() const noexcept {
        return running_loop && (current_tasks || current_task) && task_type &&
               PyType_Check(task_type.get()) && get_coro && get_name;
    }
};

// Guarded by the GIL. Never destroyed: when the process ends there is no interpreter to release objects.
Asyncio& known_asyncio = *new Asyncio;
bool is_unusable = false;  // imported, but without the expected functions

// Returns a copy, since calls may run program code that ends tracing. Incomplete if asyncio cannot be used.
Asyncio load_asyncio() noexcept {
    if (known_asyncio.is_whole() || is_unusable) return known_asyncio;
    PyObject* const modules = PyImport_GetModuleDict();  // borrowed
    const Ref module =
        Ref::borrow(PyDict_GetItemString(modules, "_asyncio"));  // may be removed by other code
    const bool is_imported =
        PyDict_GetItemString(modules, "asyncio.tasks") != nullptr;  // then it is completely imported
    PyErr_Clear();
    Asyncio asyncio;
    if (module && is_imported && PyModule_Check(module.get())) {
        asyncio.running_loop = attribute(module.get(), "_get_running_loop");
        asyncio.current_task = attribute(module.get(), "current_task");
        asyncio.current_tasks = attribute(module.get(), "_current_tasks");
        if (asyncio.current_tasks && !PyDict_Check(asyncio.current_tasks.get())) asyncio.current_tasks = {};
        asyncio.task_type = attribute(module.get(), "Task");
        asyncio.get_coro = attribute(asyncio.task_type.get(), "get_coro");
        asyncio.get_name = attribute(asyncio.task_type.get(), "get_name");
        if (asyncio.is_whole())
            known_asyncio = asyncio;
        else
            is_unusable = true;
    }
    return asyncio;
}

// The task that runs on this thread; null: none.
Ref running_task(const Asyncio& asyncio) noexcept {
    const Ref loop(PyObject_CallNoArgs(asyncio.running_loop.get()));
    if (!loop || loop.get() == Py_None) return {};
    return asyncio.current_tasks
               ? Ref::borrow(PyDict_GetItemWithError(asyncio.current_tasks.get(), loop.get()))
               : Ref(PyObject_CallOneArg(asyncio.current_task.get(), loop.get()));
}

// Calls the type's method for a task implemented in C, or reads the attribute of one implemented in Python.
Ref ask(const Asyncio& asyncio, PyObject* task, const Ref& method, const char* attribute) noexcept {
    if (PyObject_TypeCheck(task, reinterpret_cast<PyTypeObject*>(asyncio.task_type.get())))
        return Ref(PyObject_CallOneArg(method.get(), task));
    const Ref name(PyUnicode_FromString(attribute));
    return name ? Ref(PyObject_GenericGetAttr(task, name.get())) : Ref();
}

}  // namespace

void note_task(PyObject* coroutine, std::uint64_t call) noexcept {
    const SavedError error;
    const Asyncio asyncio = load_asyncio();
    if (!asyncio.is_whole()) return;
    const Ref task = running_task(asyncio);
    if (!task) return;
    const Ref own = ask(asyncio, task.get(), asyncio.get_coro, "_coro");
    PyObject* const program = own && coroutine_of_task != nullptr ? coroutine_of_task(own.get()) : own.get();
    if (program != coroutine) return;
    if (const Ref name = ask(asyncio, task.get(), asyncio.get_name, "_name"); name)
        with_text(name.get(), [call](std::string_view text) { write_task(call, text); });
}

void forget_asyncio() noexcept {
    known_asyncio = Asyncio();
    is_unusable = false;
}

}  // namespace marey::python
