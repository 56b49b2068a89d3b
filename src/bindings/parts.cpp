// parts.cpp: marey._marey.parts, the base class of coroutines that run another one and note each time it
// runs. In C++, because a Python function would be a frame of every traceback.
#include <nanobind/nanobind.h>

#include "bindings/range_objects.h"
#include "sources/python/asyncio_tasks.h"
#include "sources/python/live_calls.h"

namespace nb = nanobind;

namespace marey::bindings {
namespace {

PyTypeObject* parts_type = nullptr;
PyObject *inner_name, *begin_name, *end_name;  ///< interned

/// The iterator that a Python object runs; null with an error set if that fails. Runs no program code.
nb::object inner_of(PyObject* self) noexcept {
    return nb::steal(PyObject_GenericGetAttr(self, inner_name));
}

/// Calls self.end_part(part, is_last, error) with the type of the raised exception, or `ending`, and keeps
/// that exception. False with another one set if the call fails.
bool end_part(PyObject* self, PyObject* part, bool is_last, PyObject* ending) noexcept {
    PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
    PyErr_Fetch(&type, &value, &traceback);
    const nb::object kept[] = {nb::steal(type), nb::steal(value), nb::steal(traceback)};
    const auto ended = nb::steal(PyObject_CallMethodObjArgs(
        self, end_name, part, is_last ? Py_True : Py_False, type != nullptr ? type : ending, nullptr));
    if (ended) PyErr_Restore(Py_XNewRef(type), Py_XNewRef(value), Py_XNewRef(traceback));
    return ended.is_valid();
}

/// Runs `run(inner)`, which returns what was sent, between begin_part() and end_part().
PyObject* run_part(PyObject* self, PyObject* ending, auto run) noexcept {
    const nb::object inner = inner_of(self);
    if (!inner) return nullptr;
    if (inner.is_none()) {
        PyErr_SetString(PyExc_RuntimeError, "cannot reuse already awaited coroutine");
        return nullptr;
    }
    const auto part = nb::steal(PyObject_CallMethodNoArgs(self, begin_name));
    if (!part) return nullptr;
    PyObject* made = nullptr;
    const PySendResult sent = run(inner.ptr(), &made);
    auto result = nb::steal(made);
    // A generator's `throw` and `close` raise StopIteration themselves.
    if (!end_part(self, part.ptr(), sent != PYGEN_NEXT || ending != Py_None, ending)) return nullptr;
    if (sent != PYGEN_RETURN) return result.release().ptr();
    if (const auto error = nb::steal(PyObject_CallOneArg(PyExc_StopIteration, result.ptr())))
        PyErr_SetObject(PyExc_StopIteration, error.ptr());
    return nullptr;
}

PyObject* send(PyObject* self, PyObject* value) {
    return run_part(self, Py_None, [value](PyObject* inner, PyObject** result) {
        return PyIter_Send(inner, value, result);
    });
}

PyObject* next(PyObject* self) {
    return send(self, Py_None);
}

/// Calls a method of the inner iterator, or does `otherwise` if it has none.
PyObject* forward(PyObject* self, const char* name, PyObject* args, PyObject* ending, auto otherwise) {
    const nb::object inner = inner_of(self);
    const auto method =
        nb::steal(inner && !inner.is_none() ? PyObject_GetAttrString(inner.ptr(), name) : nullptr);
    if (!method) {
        PyErr_Clear();
        return otherwise();
    }
    return run_part(self, ending, [&](PyObject*, PyObject** result) {
        *result = PyObject_CallObject(method.ptr(), args);
        return *result != nullptr ? PYGEN_NEXT : PYGEN_ERROR;
    });
}

PyObject* throw_in(PyObject* self, PyObject* args) {
    return forward(self, "throw", args, Py_None, [args]() -> PyObject* {
        // An iterator that takes no exceptions: they are raised where it is awaited.
        PyObject* const error = PyTuple_GET_SIZE(args) != 0 ? PyTuple_GET_ITEM(args, 0) : PyExc_TypeError;
        const bool is_made = PyExceptionInstance_Check(error) != 0;
        PyErr_SetObject(is_made ? PyExceptionInstance_Class(error) : error, is_made ? error : nullptr);
        return nullptr;
    });
}

PyObject* close(PyObject* self, PyObject*) {
    return forward(self, "close", nullptr, PyExc_GeneratorExit, [] { return Py_NewRef(Py_None); });
}

PyObject* itself(PyObject* self) {
    return Py_NewRef(self);
}

void destroy(PyObject* self) {
    PyTypeObject* const type = Py_TYPE(self);
    python::forget_call(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyMethodDef kMethods[] = {
    {"send", send, METH_O, nullptr},
    {"throw", throw_in, METH_VARARGS, nullptr},
    {"close", close, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot kSlots[] = {
    {Py_am_await, reinterpret_cast<void*>(itself)},
    {Py_tp_iter, reinterpret_cast<void*>(itself)},
    {Py_tp_iternext, reinterpret_cast<void*>(next)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_methods, kMethods},
    {0, nullptr},
};
PyType_Spec kSpec = {"marey.parts", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, kSlots};

/// Tasks of web requests have a coroutine of this type around that of the program.
PyObject* program_coroutine(PyObject* coroutine) noexcept {
    if (PyObject_TypeCheck(coroutine, parts_type) == 0) return coroutine;
    const nb::object inner = inner_of(coroutine);
    if (!inner) PyErr_Clear();
    return inner ? inner.ptr() : coroutine;  // borrowed: the other one has it
}

}  // namespace

bool add_parts(PyObject* module) noexcept {
    inner_name = PyUnicode_InternFromString("inner");
    begin_name = PyUnicode_InternFromString("begin_part");
    end_name = PyUnicode_InternFromString("end_part");
    parts_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&kSpec));
    python::coroutine_of_task = program_coroutine;
    return inner_name != nullptr && begin_name != nullptr && end_name != nullptr && parts_type != nullptr &&
           PyModule_AddType(module, parts_type) == 0;
}

}  // namespace marey::bindings
