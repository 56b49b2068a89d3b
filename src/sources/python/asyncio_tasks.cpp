// asyncio_tasks.cpp: finds the running task through the C part of asyncio, which other loops use too.
#include "sources/python/asyncio_tasks.h"

#include <utility>

#include "record/source_writer.h"
#include "sources/python/python_text.h"

namespace marey::python {

namespace {

/// The asyncio functions in use, once asyncio is imported. Holds references: needs the GIL.
struct Asyncio {
    PyObject* running_loop = nullptr;   ///< _get_running_loop
    PyObject* current_tasks = nullptr;  ///< loop -> task; null: use current_task
    PyObject* current_task = nullptr;   ///< current_task(loop)
    PyObject* task_type = nullptr;
    PyObject* get_coro = nullptr;  ///< of that type, so that no override is called
    PyObject* get_name = nullptr;

    Asyncio() noexcept = default;
    Asyncio(const Asyncio& other) noexcept
        : running_loop(Py_XNewRef(other.running_loop)),
          current_tasks(Py_XNewRef(other.current_tasks)),
          current_task(Py_XNewRef(other.current_task)),
          task_type(Py_XNewRef(other.task_type)),
          get_coro(Py_XNewRef(other.get_coro)),
          get_name(Py_XNewRef(other.get_name)) {}
    Asyncio& operator=(Asyncio other) noexcept {
        std::swap(running_loop, other.running_loop);
        std::swap(current_tasks, other.current_tasks);
        std::swap(current_task, other.current_task);
        std::swap(task_type, other.task_type);
        std::swap(get_coro, other.get_coro);
        std::swap(get_name, other.get_name);
        return *this;
    }
    ~Asyncio() {
        for (PyObject* const each :
             {running_loop, current_tasks, current_task, task_type, get_coro, get_name})
            Py_XDECREF(each);
    }

    bool is_whole() const noexcept {
        return running_loop != nullptr && (current_tasks != nullptr || current_task != nullptr) &&
               task_type != nullptr && PyType_Check(task_type) && get_coro != nullptr && get_name != nullptr;
    }
};

// Guarded by the GIL. Never destroyed: when the process ends there is no interpreter to release objects.
Asyncio& known_asyncio = *new Asyncio;
bool is_unusable = false;  // imported, but without the expected functions

// Returns a copy, since calls may run program code that ends tracing. Incomplete if asyncio cannot be used.
Asyncio load_asyncio() noexcept {
    if (known_asyncio.is_whole() || is_unusable) return known_asyncio;
    PyObject* const modules = PyImport_GetModuleDict();  // borrowed
    PyObject* const module =
        Py_XNewRef(PyDict_GetItemString(modules, "_asyncio"));  // may be removed by other code
    const bool is_imported =
        PyDict_GetItemString(modules, "asyncio.tasks") != nullptr;  // then it is completely imported
    PyErr_Clear();
    Asyncio asyncio;
    if (module != nullptr && is_imported && PyModule_Check(module)) {
        const auto attribute = [](PyObject* object, const char* name) -> PyObject* {
            PyObject* const found = object == nullptr ? nullptr : PyObject_GetAttrString(object, name);
            PyErr_Clear();
            return found;
        };
        asyncio.running_loop = attribute(module, "_get_running_loop");
        asyncio.current_task = attribute(module, "current_task");
        asyncio.current_tasks = attribute(module, "_current_tasks");
        if (asyncio.current_tasks != nullptr && !PyDict_Check(asyncio.current_tasks))
            Py_CLEAR(asyncio.current_tasks);
        asyncio.task_type = attribute(module, "Task");
        asyncio.get_coro = attribute(asyncio.task_type, "get_coro");
        asyncio.get_name = attribute(asyncio.task_type, "get_name");
        if (asyncio.is_whole())
            known_asyncio = asyncio;
        else
            is_unusable = true;
    }
    Py_XDECREF(module);
    return asyncio;
}

// The task that runs on this thread, as a new reference; null: none.
PyObject* running_task(const Asyncio& asyncio) noexcept {
    PyObject* const loop = PyObject_CallNoArgs(asyncio.running_loop);
    PyObject* task = nullptr;
    if (loop != nullptr && loop != Py_None) {
        task = asyncio.current_tasks != nullptr
                   ? Py_XNewRef(PyDict_GetItemWithError(asyncio.current_tasks, loop))
                   : PyObject_CallOneArg(asyncio.current_task, loop);
    }
    Py_XDECREF(loop);
    PyErr_Clear();
    return task;
}

// Calls the type's method for a task implemented in C, or reads the attribute of one implemented in Python.
// Returns a new reference or null.
PyObject* ask(const Asyncio& asyncio, PyObject* task, PyObject* method, const char* attribute) noexcept {
    PyObject* found;
    if (PyObject_TypeCheck(task, reinterpret_cast<PyTypeObject*>(asyncio.task_type))) {
        found = PyObject_CallOneArg(method, task);
    } else {
        PyObject* const name = PyUnicode_FromString(attribute);
        found = name != nullptr ? PyObject_GenericGetAttr(task, name) : nullptr;
        Py_XDECREF(name);
    }
    PyErr_Clear();
    return found;
}

}  // namespace

void note_task(PyObject* coroutine, std::uint64_t call) noexcept {
    const SavedError error;
    const Asyncio asyncio = load_asyncio();
    if (!asyncio.is_whole()) return;
    PyObject* const task = running_task(asyncio);
    if (task == nullptr) return;
    PyObject* const own = ask(asyncio, task, asyncio.get_coro, "_coro");
    PyObject* const program = own != nullptr && coroutine_of_task != nullptr ? coroutine_of_task(own) : own;
    if (program == coroutine) {
        if (PyObject* const name = ask(asyncio, task, asyncio.get_name, "_name")) {
            with_text(name, [call](std::string_view text) { write_task(call, text); });
            Py_DECREF(name);
        }
    }
    Py_XDECREF(own);
    Py_DECREF(task);
}

void forget_asyncio() noexcept {
    known_asyncio = Asyncio();
    is_unusable = false;
}

}  // namespace marey::python
