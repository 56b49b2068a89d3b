// request_parts.cpp: marey._marey.request_parts: awaits a request's coroutine, with a range for each time it
// runs.
#include <Python.h>

#include <cstdint>

#include "bindings/inherited_context.h"
#include "bindings/range_objects.h"
#include "bindings/site_cache.h"
#include "sources/python/late_range.h"
#include "sources/python/live_calls.h"

namespace marey::bindings {
namespace {

struct RequestParts {
    PyObject_HEAD PyObject* inner;  ///< a coroutine or another iterator
    PyObject* name;                 ///< called with `argument` at the end of each part: the name of the range
    PyObject* argument;
    PyObject* known;  ///< a tuple: the route, the method, and at its end the name of their parts
    bool has_begun;
};

PyObject* first_name = nullptr;  ///< "request": of a part until it ends
PyObject *route_key = nullptr, *method_key = nullptr;

RequestParts* self_of(PyObject* object) noexcept {
    return reinterpret_cast<RequestParts*>(object);
}

/// One part: its range is open for the lifetime of this object.
class Part {
  public:
    explicit Part(RequestParts* request) noexcept : request_(request) {
        open_if_recording(Scope::User, [this]() noexcept {
            const std::uint32_t site = site_cache.site(first_name, Scope::User);
            if (site != 0) range_.begin(site);
        });
        start_ = range_.start();
        if (start_ != 0 && request_->has_begun) python::begin_part(request_, false, start_);
    }
    ~Part() {
        if (!range_.is_open()) return;
        const std::uint32_t site = site_at_end();
        // The only part of a request is a plain range.
        if (start_ != 0 && !request_->has_begun && !is_last) python::begin_part(request_, true, start_);
        if (start_ != 0 && (request_->has_begun || !is_last)) python::end_part(request_, start_, is_last);
        request_->has_begun = true;
        range_.end(site, {});
    }
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

    bool is_last = false;

  private:
    /// Whether the argument, an ASGI scope, has the route and the method of the known name. Saves a call.
    bool is_known() const noexcept {
        PyObject* const route = PyTuple_GET_ITEM(request_->known, 0);
        if (route == Py_None || !PyDict_CheckExact(request_->argument) ||
            PyDict_GetItemWithError(request_->argument, route_key) != route)
            return false;
        PyObject* const method = PyDict_GetItemWithError(request_->argument, method_key);
        return method != nullptr && PyUnicode_CheckExact(method) &&
               PyUnicode_CheckExact(PyTuple_GET_ITEM(request_->known, 1)) &&
               PyUnicode_Compare(method, PyTuple_GET_ITEM(request_->known, 1)) == 0;
    }
    /// 0: it keeps its first name. Does not change the Python error state.
    std::uint32_t site_at_end() const noexcept {
        PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
        PyErr_Fetch(&type, &value, &traceback);
        PyObject* const name = is_known() ? Py_NewRef(PyTuple_GET_ITEM(request_->known, 3))
                                          : PyObject_CallOneArg(request_->name, request_->argument);
        const std::uint32_t site =
            name != nullptr && PyUnicode_Check(name) ? site_cache.site(name, Scope::User) : 0;
        Py_XDECREF(name);
        PyErr_Restore(type, value, traceback);  // replaces an error of the call
        return site;
    }

    RequestParts* request_;
    python::LateRange range_{};
    std::uint64_t start_ = 0;  ///< of the range, if it is recorded
};

PyObject* construct(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
    PyObject *awaitable = nullptr, *name = nullptr, *argument = nullptr, *known = nullptr;
    if (kwargs != nullptr) {
        PyErr_SetString(PyExc_TypeError, "request_parts() takes no keyword arguments");
        return nullptr;
    }
    if (!PyArg_UnpackTuple(args, "request_parts", 4, 4, &awaitable, &name, &argument, &known)) return nullptr;
    if (!PyTuple_Check(known) || PyTuple_GET_SIZE(known) != 4) {
        PyErr_SetString(PyExc_TypeError, "request_parts(): a known name is a tuple of four");
        return nullptr;
    }
    PyObject* inner = nullptr;
    if (PyCoro_CheckExact(awaitable)) {
        inner = Py_NewRef(awaitable);
    } else if (Py_TYPE(awaitable)->tp_as_async != nullptr &&
               Py_TYPE(awaitable)->tp_as_async->am_await != nullptr) {
        inner = Py_TYPE(awaitable)->tp_as_async->am_await(awaitable);
    } else {
        PyErr_Format(PyExc_TypeError, "object %.100s can't be used in 'await' expression",
                     Py_TYPE(awaitable)->tp_name);
    }
    if (inner == nullptr) return nullptr;
    auto* const self = self_of(type->tp_alloc(type, 0));
    if (self == nullptr) {
        Py_DECREF(inner);
        return nullptr;
    }
    self->inner = inner;
    self->name = Py_NewRef(name);
    self->argument = Py_NewRef(argument);
    self->known = Py_NewRef(known);
    return reinterpret_cast<PyObject*>(self);
}

PySendResult send_value(PyObject* object, PyObject* value, PyObject** result) {
    Part part(self_of(object));
    const PySendResult sent = PyIter_Send(self_of(object)->inner, value, result);
    part.is_last = sent != PYGEN_NEXT;
    return sent;
}

PyObject* send(PyObject* object, PyObject* value) {
    PyObject* result = nullptr;
    if (send_value(object, value, &result) != PYGEN_RETURN) return result;
    PyObject* const stop = PyObject_CallOneArg(PyExc_StopIteration, result);
    Py_DECREF(result);
    if (stop != nullptr) PyErr_SetObject(PyExc_StopIteration, stop);
    Py_XDECREF(stop);
    return nullptr;
}

PyObject* next(PyObject* object) {
    return send(object, Py_None);
}

// Calls a method of the inner iterator as a part.
PyObject* forward(PyObject* object, const char* name, PyObject* args, bool is_last) {
    PyObject* const method = PyObject_GetAttrString(self_of(object)->inner, name);
    if (method == nullptr) return nullptr;
    Part part(self_of(object));
    PyObject* const result = PyObject_CallObject(method, args);
    part.is_last = is_last || result == nullptr;
    Py_DECREF(method);
    return result;
}

PyObject* throw_in(PyObject* object, PyObject* args) {
    if (PyObject_HasAttrString(self_of(object)->inner, "throw")) return forward(object, "throw", args, false);
    // An iterator that takes no exceptions: they are raised where it is awaited.
    PyObject* const error = PyTuple_GET_SIZE(args) != 0 ? PyTuple_GET_ITEM(args, 0) : PyExc_TypeError;
    PyErr_SetObject(PyExceptionInstance_Check(error) ? PyExceptionInstance_Class(error) : error,
                    PyExceptionInstance_Check(error) ? error : nullptr);
    return nullptr;
}

PyObject* close(PyObject* object, PyObject*) {
    if (!PyObject_HasAttrString(self_of(object)->inner, "close")) Py_RETURN_NONE;
    return forward(object, "close", nullptr, true);
}

PyObject* itself(PyObject* object) {
    return Py_NewRef(object);
}

int traverse(PyObject* object, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self_of(object)->inner);
    Py_VISIT(self_of(object)->name);
    Py_VISIT(self_of(object)->argument);
    Py_VISIT(self_of(object)->known);
    return 0;
}

int clear(PyObject* object) {
    Py_CLEAR(self_of(object)->inner);
    Py_CLEAR(self_of(object)->name);
    Py_CLEAR(self_of(object)->argument);
    Py_CLEAR(self_of(object)->known);
    return 0;
}

void destroy(PyObject* object) {
    PyTypeObject* const type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    python::forget_call(object);
    clear(object);
    type->tp_free(object);
    Py_DECREF(type);
}

PyMethodDef kMethods[] = {
    {"send", send, METH_O, nullptr},
    {"throw", throw_in, METH_VARARGS, nullptr},
    {"close", close, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot kSlots[] = {
    {Py_tp_doc,
     const_cast<char*>("Await a request, with a range for each time it runs.\n\n"
                       "`name(argument)` returns the name of the range, when it ends; or it is the "
                       "last of `known` = (route, method, name, name of parts), if `argument` is an "
                       "ASGI scope with that route and method.")},
    {Py_tp_new, reinterpret_cast<void*>(construct)},
    {Py_am_await, reinterpret_cast<void*>(itself)},
    {Py_am_send, reinterpret_cast<void*>(send_value)},
    {Py_tp_iter, reinterpret_cast<void*>(itself)},
    {Py_tp_iternext, reinterpret_cast<void*>(next)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_methods, kMethods},
    {0, nullptr},
};
PyType_Spec kSpec = {"marey.request_parts", sizeof(RequestParts), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_HAVE_GC, kSlots};

}  // namespace

bool add_request_parts(PyObject* module) noexcept {
    first_name = PyUnicode_InternFromString("request");
    route_key = PyUnicode_InternFromString("route");
    method_key = PyUnicode_InternFromString("method");
    auto* const type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&kSpec));
    return first_name != nullptr && route_key != nullptr && method_key != nullptr && type != nullptr &&
           PyModule_AddType(module, type) == 0;
}

}  // namespace marey::bindings
