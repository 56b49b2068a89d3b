// requests.cpp: marey._marey.requests and the awaitable of each request, which has a range for each time it
// runs, and for what it runs in tasks and on other threads.
#include "bindings/requests.h"

#include <Python.h>
#include <structmember.h>

#include <cstddef>
#include <utility>

#include "bindings/range_objects.h"
#include "sources/python/asyncio_tasks.h"
#include "sources/python/live_calls.h"

namespace marey::bindings {
namespace {

PyTypeObject *request_type = nullptr, *work_type = nullptr;

/// Once, at the first request that is recorded: wraps the functions that start tasks or hand work to threads.
void follow_requests() noexcept {
    static bool is_done = false;  // guarded by the GIL
    if (std::exchange(is_done, true)) return;
    PyObject* const module = PyImport_ImportModule("marey.context.propagation");
    PyObject* const result =
        module != nullptr ? PyObject_CallMethod(module, "follow_requests", nullptr) : nullptr;
    if (result == nullptr) PyErr_WriteUnraisable(module);
    Py_XDECREF(result);
    Py_XDECREF(module);
}

/// `inner`: taken, may be null. Null with a Python error set: out of memory.
Request* make_request(Requests* owner, PyObject* argument, PyObject* inner) noexcept {
    Request* const self =
        request_of(request_type->tp_alloc(request_type, 0));  // zeros: the range is not open
    if (self == nullptr) {
        Py_XDECREF(inner);
        return nullptr;
    }
    Py_INCREF(owner);
    self->owner = owner;
    self->argument = Py_NewRef(argument);
    self->call = send_message;
    self->inner = inner;
    return self;
}

/// Takes the iterator of an awaitable. Null with a Python error set: it is none.
PyObject* iterator_of(PyObject* awaitable) noexcept {
    if (PyCoro_CheckExact(awaitable)) return Py_NewRef(awaitable);
    const PyAsyncMethods* const methods = Py_TYPE(awaitable)->tp_as_async;
    if (methods != nullptr && methods->am_await != nullptr) return methods->am_await(awaitable);
    PyErr_Format(PyExc_TypeError, "object %.100s can't be used in 'await' expression",
                 Py_TYPE(awaitable)->tp_name);
    return nullptr;
}

/// Makes a request await `awaitable`, which is taken; null: calling the application has failed.
bool await_in(Request* self, PyObject* awaitable) noexcept {
    PyObject* const inner = awaitable != nullptr ? iterator_of(awaitable) : nullptr;
    Py_XDECREF(awaitable);
    Py_XSETREF(self->inner, inner);
    return inner != nullptr;
}

// ---- a request as a coroutine

PySendResult send_value(PyObject* object, PyObject* value, PyObject** result) {
    Request* const self = request_of(object);
    if (self->inner == nullptr) {
        *result = nullptr;
        PyErr_SetString(PyExc_RuntimeError, "cannot reuse already awaited coroutine");
        return PYGEN_ERROR;
    }
    PySendResult sent = PYGEN_ERROR;
    {
        Part part(self);
        sent = PyIter_Send(self->inner, value, result);
        part.is_last = sent != PYGEN_NEXT;
    }
    // The coroutine of a request holds it, as its `send`. That of a task can still be asked for.
    if (sent != PYGEN_NEXT && !self->is_task) Py_CLEAR(self->inner);
    return sent;
}

/// Raises the StopIteration that returns `result`, which is taken.
PyObject* stop(PyObject* result) {
    PyObject* const error = PyObject_CallOneArg(PyExc_StopIteration, result);
    Py_DECREF(result);
    if (error != nullptr) PyErr_SetObject(PyExc_StopIteration, error);
    Py_XDECREF(error);
    return nullptr;
}

PyObject* send(PyObject* object, PyObject* value) {
    PyObject* result = nullptr;
    return send_value(object, value, &result) != PYGEN_RETURN ? result : stop(result);
}

/// `await` calls this in Python 3.12. No error is enough to return None.
PyObject* next(PyObject* object) {
    PyObject* result = nullptr;
    if (send_value(object, Py_None, &result) != PYGEN_RETURN) return result;
    if (result != Py_None) return stop(result);
    Py_DECREF(result);
    return nullptr;
}

// Calls a method of the inner iterator as a part.
PyObject* forward(PyObject* object, const char* name, PyObject* args, bool is_last) {
    PyObject* const method = PyObject_GetAttrString(request_of(object)->inner, name);
    if (method == nullptr) return nullptr;
    Part part(request_of(object));
    PyObject* const result = PyObject_CallObject(method, args);
    part.is_last = is_last || result == nullptr;
    Py_DECREF(method);
    return result;
}

bool has_method(PyObject* object, const char* name) {
    PyObject* const inner = request_of(object)->inner;
    return inner != nullptr && PyObject_HasAttrString(inner, name) != 0;
}

PyObject* throw_in(PyObject* object, PyObject* args) {
    if (has_method(object, "throw")) return forward(object, "throw", args, false);
    // An iterator that takes no exceptions: they are raised where it is awaited.
    PyObject* const error = PyTuple_GET_SIZE(args) != 0 ? PyTuple_GET_ITEM(args, 0) : PyExc_TypeError;
    PyErr_SetObject(PyExceptionInstance_Check(error) ? PyExceptionInstance_Class(error) : error,
                    PyExceptionInstance_Check(error) ? error : nullptr);
    return nullptr;
}

PyObject* close(PyObject* object, PyObject*) {
    if (!has_method(object, "close")) Py_RETURN_NONE;
    return forward(object, "close", nullptr, true);
}

PyObject* itself(PyObject* object) {
    return Py_NewRef(object);
}

/// A task's coroutine has the attributes of the program's: its frame, its name and what it awaits.
PyObject* get_attribute(PyObject* object, PyObject* name) {
    PyObject* const own = PyObject_GenericGetAttr(object, name);
    const Request* const self = request_of(object);
    if (own != nullptr || !self->is_task || PyErr_ExceptionMatches(PyExc_AttributeError) == 0) return own;
    PyErr_Clear();
    return PyObject_GetAttr(self->inner, name);
}

// ---- a request that is not awaited, or not from its beginning

/// Calls a function as the request: what it hands to other threads is work of the request.
PyObject* run(PyObject* object, PyObject* const* args, Py_ssize_t count) {
    if (count == 0) {
        PyErr_SetString(PyExc_TypeError, "run() takes a function and its arguments");
        return nullptr;
    }
    PyObject* const token = enter_request(request_of(object));
    PyObject* const result =
        PyObject_Vectorcall(args[0], args + 1, static_cast<std::size_t>(count - 1), nullptr);
    const KeptError kept;
    leave_request(token);
    return result;
}

PyObject* awaits(PyObject* object, PyObject* awaitable) {
    return await_in(request_of(object), Py_NewRef(awaitable)) ? Py_NewRef(object) : nullptr;
}

PyObject* end(PyObject* object, PyObject*) {
    end_request(request_of(object));
    Py_CLEAR(request_of(object)->argument);  // it may hold the request
    Py_RETURN_NONE;
}

PyObject* name(PyObject* object, void*) {
    PyObject* const names = names_of(request_of(object));
    return names != nullptr ? Py_NewRef(PyTuple_GET_ITEM(names, kRequest)) : PyUnicode_FromString("");
}

int traverse(PyObject* object, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(object));
    const Request* const self = request_of(object);
    Py_VISIT(self->owner);
    for (PyObject* const each :
         {self->argument, self->values, self->send, self->inner, self->found, self->token})
        Py_VISIT(each);
    return 0;
}

int clear(PyObject* object) {
    Request* const self = request_of(object);
    for (PyObject** const each :
         {&self->argument, &self->values, &self->send, &self->inner, &self->found, &self->token})
        Py_CLEAR(*each);
    return 0;
}

void destroy(PyObject* object) {
    PyTypeObject* const type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (request_of(object)->is_live) python::forget_call(object);
    request_of(object)->range.drop();
    clear(object);
    Py_CLEAR(request_of(object)->owner);
    type->tp_free(object);
    Py_DECREF(type);
}

PyMethodDef kMethods[] = {
    {"awaits", awaits, METH_O, "Return this request, which awaits the argument."},
    {"run", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(run)), METH_FASTCALL,
     "Call a function with arguments as this request."},
    {"end", end, METH_NOARGS, "End the request's range. Does nothing if it has ended."},
    {"send", send, METH_O, nullptr},
    {"throw", throw_in, METH_VARARGS, nullptr},
    {"close", close, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyMemberDef kMembers[] = {
    {"status", T_LONGLONG, offsetof(Request, status), 0, "The status of the response."},
    {"bytes", T_LONGLONG, offsetof(Request, bytes), 0, "The size of its body."},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Request, call), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyGetSetDef kProperties[] = {
    {"name", name, nullptr, "The name of the request: its method and route.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot kSlots[] = {
    {Py_tp_doc,
     const_cast<char*>("A web request: await it, or call it with run().\n\n"
                       "It has a range from its beginning to its end, with the status and the size of the "
                       "response, and one for each time it runs. Calling it passes an ASGI message on.")},
    {Py_am_await, reinterpret_cast<void*>(itself)},
    {Py_am_send, reinterpret_cast<void*>(send_value)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_getattro, reinterpret_cast<void*>(get_attribute)},
    {Py_tp_iter, reinterpret_cast<void*>(itself)},
    {Py_tp_iternext, reinterpret_cast<void*>(next)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_methods, kMethods},
    {Py_tp_members, kMembers},
    {Py_tp_getset, kProperties},
    {0, nullptr},
};
PyType_Spec kSpec = {"marey.request", sizeof(Request), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_HAVE_GC |
                         Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                     kSlots};

// ---- the requests of a middleware

Requests* requests_of(PyObject* object) noexcept {
    return reinterpret_cast<Requests*>(object);
}

/// Calls the ASGI application: requests(scope, receive, send, values). Returns the request, to be awaited.
PyObject* call_app(PyObject* object, PyObject* const* args, std::size_t flagged_count, PyObject* keywords) {
    if (PyVectorcall_NARGS(flagged_count) != 4 || (keywords != nullptr && PyTuple_GET_SIZE(keywords) != 0) ||
        !PyDict_Check(args[3])) {
        PyErr_SetString(PyExc_TypeError, "a request takes a scope, receive, send and a dict of values");
        return nullptr;
    }
    follow_requests();
    Request* const self = make_request(requests_of(object), args[0], nullptr);
    if (self == nullptr) return nullptr;
    self->send = Py_NewRef(args[2]);
    self->values = Py_NewRef(args[3]);
    self->ends_itself = true;
    begin_request(self, false);
    PyObject* const request = reinterpret_cast<PyObject*>(self);
    PyObject* const arguments[] = {args[0], args[1], request};
    if (await_in(self, PyObject_Vectorcall(self->owner->app, arguments, 3, nullptr))) return request;
    self->status = 500;
    {
        const KeptError kept;
        end_request(self);
    }
    Py_DECREF(request);
    return nullptr;
}

/// begin(argument, values, nests)
PyObject* begin(PyObject* object, PyObject* const* args, Py_ssize_t count) {
    if (count != 3 || !PyDict_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "begin() takes an argument, a dict of values and whether it nests");
        return nullptr;
    }
    follow_requests();
    Request* const self = make_request(requests_of(object), args[0], nullptr);
    if (self == nullptr) return nullptr;
    self->values = Py_NewRef(args[1]);
    begin_request(self, args[2] == Py_True);
    return reinterpret_cast<PyObject*>(self);
}

PyObject* construct(PyTypeObject* type, PyObject* args, PyObject*) {
    PyObject *app = nullptr, *names = nullptr;
    if (PyArg_ParseTuple(args, "OO:requests", &app, &names) == 0) return nullptr;
    PyObject* const object = type->tp_alloc(type, 0);
    if (object == nullptr) return nullptr;
    requests_of(object)->call = call_app;
    requests_of(object)->app = Py_NewRef(app);
    requests_of(object)->names = Py_NewRef(names);
    return object;
}

int traverse_requests(PyObject* object, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(requests_of(object)->app);
    Py_VISIT(requests_of(object)->names);
    for (PyObject* const each : requests_of(object)->known) Py_VISIT(each);
    return 0;
}

int clear_requests(PyObject* object) {
    for (PyObject*& each : requests_of(object)->known) Py_CLEAR(each);
    return 0;
}

void destroy_requests(PyObject* object) {
    PyTypeObject* const type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    clear_requests(object);
    Py_CLEAR(requests_of(object)->app);
    Py_CLEAR(requests_of(object)->names);
    type->tp_free(object);
    Py_DECREF(type);
}

PyMethodDef kRequestsMethods[] = {
    {"begin", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(begin)), METH_FASTCALL,
     "Begin a request that is ended with end()."},
    {nullptr, nullptr, 0, nullptr},
};
PyMemberDef kRequestsMembers[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Requests, call), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyType_Slot kRequestsSlots[] = {
    {Py_tp_doc,
     const_cast<char*>("The requests of one middleware: requests(app, names).\n\n"
                       "`names(argument)` returns the route or None, the method, and the names of the "
                       "request, its parts, and its work in threads and tasks. Calling it calls the ASGI "
                       "application, and returns the request.")},
    {Py_tp_new, reinterpret_cast<void*>(construct)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse_requests)},
    {Py_tp_clear, reinterpret_cast<void*>(clear_requests)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy_requests)},
    {Py_tp_methods, kRequestsMethods},
    {Py_tp_members, kRequestsMembers},
    {0, nullptr},
};
PyType_Spec kRequestsSpec = {
    "marey.requests", sizeof(Requests), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    kRequestsSlots};

// ---- work in threads and tasks

/// A function of a request, to be called on another thread.
struct RequestWork {
    PyObject_HEAD PyObject* function;
    PyObject* request;  ///< a Request
};

PyObject* call_work(PyObject* object, PyObject* args, PyObject* kwargs) {
    auto* const self = reinterpret_cast<RequestWork*>(object);
    const ThreadWork work(request_of(self->request));
    return PyObject_Call(self->function, args, kwargs);
}

int traverse_work(PyObject* object, visitproc visit, void* arg) {
    auto* const self = reinterpret_cast<RequestWork*>(object);
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->function);
    Py_VISIT(self->request);
    return 0;
}

int clear_work(PyObject* object) {
    auto* const self = reinterpret_cast<RequestWork*>(object);
    Py_CLEAR(self->function);
    Py_CLEAR(self->request);
    return 0;
}

void destroy_work(PyObject* object) {
    PyTypeObject* const type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    clear_work(object);
    type->tp_free(object);
    Py_DECREF(type);
}

PyObject* request_work(PyObject*, PyObject* function) {
    PyObject* const request = current_request();
    if (request == nullptr) return Py_NewRef(function);
    PyObject* const object = work_type->tp_alloc(work_type, 0);
    if (object == nullptr) {
        Py_DECREF(request);
        return nullptr;
    }
    auto* const work = reinterpret_cast<RequestWork*>(object);
    work->function = Py_NewRef(function);
    work->request = request;
    return object;
}

PyObject* request_task(PyObject*, PyObject* coroutine) {
    PyObject* const object = PyCoro_CheckExact(coroutine) ? current_request() : nullptr;
    if (object == nullptr) return Py_NewRef(coroutine);
    const Request* const request = request_of(object);
    Request* const task = request->argument != nullptr
                              ? make_request(request->owner, request->argument, Py_NewRef(coroutine))
                              : nullptr;
    if (task != nullptr) task->is_task = true;
    Py_DECREF(object);
    if (task != nullptr || PyErr_Occurred() != nullptr) return reinterpret_cast<PyObject*>(task);
    return Py_NewRef(coroutine);
}

PyMethodDef kFunctions[] = {
    {"request_work", request_work, METH_O,
     "Return a function to be called on another thread: in a web request, one whose calls are ranges of the "
     "request, otherwise the same function."},
    {"request_task", request_task, METH_O,
     "Return a coroutine for a new task: in a web request, one with ranges of the request, otherwise the "
     "same "
     "coroutine."},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot kWorkSlots[] = {
    {Py_tp_call, reinterpret_cast<void*>(call_work)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse_work)},
    {Py_tp_clear, reinterpret_cast<void*>(clear_work)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy_work)},
    {0, nullptr},
};
PyType_Spec kWorkSpec = {
    "marey.request_work", sizeof(RequestWork), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    kWorkSlots};

}  // namespace

bool add_requests(PyObject* module) noexcept {
    if (!make_request_texts()) return false;
    request_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&kSpec));
    auto* const requests_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&kRequestsSpec));
    work_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&kWorkSpec));
    python::coroutine_of_task = [](PyObject* coroutine) noexcept {
        return Py_TYPE(coroutine) == request_type ? request_of(coroutine)->inner : coroutine;
    };
    return request_type != nullptr && requests_type != nullptr && work_type != nullptr &&
           PyModule_AddType(module, request_type) == 0 && PyModule_AddType(module, requests_type) == 0 &&
           PyModule_AddFunctions(module, kFunctions) == 0;
}

}  // namespace marey::bindings
