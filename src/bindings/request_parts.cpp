// request_parts.cpp: marey._marey.request_parts: awaits a request's coroutine, with a range for each time it
// runs, and for the work that it hands to other threads.
#include <Python.h>
#include <structmember.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "bindings/inherited_context.h"
#include "bindings/range_objects.h"
#include "bindings/site_cache.h"
#include "sources/python/late_range.h"
#include "sources/python/live_calls.h"

namespace marey::bindings {
namespace {

struct RequestParts {
    PyObject_HEAD PyObject* inner;  ///< a coroutine or another iterator; None: the request is not awaited
    PyObject* names;                ///< called with `argument` at the end of each part: a tuple of kNames
    PyObject* argument;
    PyObject* known;  ///< the tuple of the last request
    PyObject* found;  ///< the tuple of this one, once a part has ended; else null
    PyObject* token;  ///< of current_request, while the request is set there; else null
    bool has_begun;
};

/// The items of the tuple: the route, the method, and the names of the request, its parts and its work in
/// threads.
enum Names : Py_ssize_t { kRoute, kMethod, kRequest, kPart, kThread, kNames };

PyTypeObject* work_type = nullptr;
PyObject* current_request = nullptr;  ///< a ContextVar: tasks that a request starts inherit the request
PyObject* first_name = nullptr;       ///< "request": of a part until it ends
PyObject *route_key = nullptr, *method_key = nullptr;

RequestParts* self_of(PyObject* object) noexcept {
    return reinterpret_cast<RequestParts*>(object);
}

/// Keeps the Python error state of its creation.
class KeptError {
  public:
    KeptError() noexcept { PyErr_Fetch(&type_, &value_, &traceback_); }
    ~KeptError() { PyErr_Restore(type_, value_, traceback_); }  // replaces a later error
    KeptError(const KeptError&) = delete;
    KeptError& operator=(const KeptError&) = delete;

  private:
    PyObject *type_ = nullptr, *value_ = nullptr, *traceback_ = nullptr;
};

/// Sets the request of the current contextvars.Context. Null, without an error: out of memory.
PyObject* enter(RequestParts* request) noexcept {
    PyObject* const token = PyContextVar_Set(current_request, reinterpret_cast<PyObject*>(request));
    if (token == nullptr) PyErr_Clear();
    return token;
}
/// Takes the token. In another contextvars.Context the variable keeps its value.
void leave(PyObject* token) noexcept {
    if (token == nullptr) return;
    const KeptError kept;
    PyContextVar_Reset(current_request, token);
    Py_DECREF(token);
}

/// A range of a request, open for the lifetime of the object.
class RequestRange {
  protected:
    explicit RequestRange(RequestParts* request) noexcept : request_(request) {
        open_if_recording(Scope::User, [this]() noexcept {
            const std::uint32_t site = site_cache.site(first_name, Scope::User);
            if (site != 0) range_.begin(site);
        });
    }
    /// The site of one of the request's names; 0: the range keeps its first name. Does not change the Python
    /// error state.
    std::uint32_t site_at_end(Names which) const noexcept {
        const KeptError kept;
        PyObject* const names = is_known() ? Py_NewRef(request_->known)
                                           : PyObject_CallOneArg(request_->names, request_->argument);
        const bool is_valid = names != nullptr && PyTuple_Check(names) && PyTuple_GET_SIZE(names) == kNames &&
                              PyUnicode_Check(PyTuple_GET_ITEM(names, which));
        const std::uint32_t site =
            is_valid ? site_cache.site(PyTuple_GET_ITEM(names, which), Scope::User) : 0;
        Py_XSETREF(request_->found, names);
        return site;
    }

    RequestParts* request_;
    python::LateRange range_{};

  private:
    /// Whether the argument, an ASGI scope, has the route and the method of the known names. Saves a call.
    bool is_known() const noexcept {
        PyObject* const route = PyTuple_GET_ITEM(request_->known, kRoute);
        if (route == Py_None || !PyDict_CheckExact(request_->argument) ||
            PyDict_GetItemWithError(request_->argument, route_key) != route)
            return false;
        PyObject* const method = PyDict_GetItemWithError(request_->argument, method_key);
        return method != nullptr && PyUnicode_CheckExact(method) &&
               PyUnicode_CheckExact(PyTuple_GET_ITEM(request_->known, kMethod)) &&
               PyUnicode_Compare(method, PyTuple_GET_ITEM(request_->known, kMethod)) == 0;
    }
};

/// One part.
class Part : RequestRange {
  public:
    explicit Part(RequestParts* request) noexcept : RequestRange(request), start_(range_.start()) {
        if (start_ != 0 && request_->has_begun) python::begin_part(request_, false, start_);
        if (!request_->has_begun && range_.is_open()) request_->token = enter(request_);
    }
    ~Part() {
        if (is_last) leave(std::exchange(request_->token, nullptr));
        if (!range_.is_open()) return;
        const std::uint32_t site = site_at_end(kPart);
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
    const std::uint64_t start_;  ///< of the range, if it is recorded
};

/// Work of a request on another thread.
class ThreadWork : RequestRange {
  public:
    explicit ThreadWork(RequestParts* request) noexcept : RequestRange(request), token_(enter(request)) {}
    ~ThreadWork() {
        leave(token_);
        if (range_.is_open()) range_.end(site_at_end(kThread), {});
    }
    ThreadWork(const ThreadWork&) = delete;
    ThreadWork& operator=(const ThreadWork&) = delete;

  private:
    PyObject* const token_;
};

/// Once, at the first request that is recorded: wraps the functions that hand work to threads.
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

PyObject* construct(PyObject* its_type, PyObject* const* args, std::size_t flagged_count,
                    PyObject* keywords) {
    if (PyVectorcall_NARGS(flagged_count) != 4 || (keywords != nullptr && PyTuple_GET_SIZE(keywords) != 0)) {
        PyErr_SetString(PyExc_TypeError, "request_parts() takes four arguments, by position");
        return nullptr;
    }
    auto* const type = reinterpret_cast<PyTypeObject*>(its_type);
    PyObject *const awaitable = args[0], *const names = args[1], *const argument = args[2],
                    *const known = args[3];
    if (!PyTuple_Check(known) || PyTuple_GET_SIZE(known) != kNames) {
        PyErr_SetString(PyExc_TypeError, "request_parts(): the known names are a tuple of five");
        return nullptr;
    }
    PyObject* inner = nullptr;
    if (PyCoro_CheckExact(awaitable) || awaitable == Py_None) {
        inner = Py_NewRef(awaitable);
    } else if (Py_TYPE(awaitable)->tp_as_async != nullptr &&
               Py_TYPE(awaitable)->tp_as_async->am_await != nullptr) {
        inner = Py_TYPE(awaitable)->tp_as_async->am_await(awaitable);
    } else {
        PyErr_Format(PyExc_TypeError, "object %.100s can't be used in 'await' expression",
                     Py_TYPE(awaitable)->tp_name);
    }
    if (inner == nullptr) return nullptr;
    follow_requests();
    auto* const self = self_of(type->tp_alloc(type, 0));
    if (self == nullptr) {
        Py_DECREF(inner);
        return nullptr;
    }
    self->inner = inner;
    self->names = Py_NewRef(names);
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

/// Calls a function as the request: what it hands to other threads is work of the request.
PyObject* run(PyObject* object, PyObject* const* args, Py_ssize_t count) {
    if (count == 0) {
        PyErr_SetString(PyExc_TypeError, "run() takes a function and its arguments");
        return nullptr;
    }
    PyObject* const token = enter(self_of(object));
    PyObject* const result =
        PyObject_Vectorcall(args[0], args + 1, static_cast<std::size_t>(count - 1), nullptr);
    leave(token);
    return result;
}

PyObject* itself(PyObject* object) {
    return Py_NewRef(object);
}

int traverse(PyObject* object, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self_of(object)->inner);
    Py_VISIT(self_of(object)->names);
    Py_VISIT(self_of(object)->argument);
    Py_VISIT(self_of(object)->known);
    Py_VISIT(self_of(object)->found);
    Py_VISIT(self_of(object)->token);
    return 0;
}

int clear(PyObject* object) {
    Py_CLEAR(self_of(object)->inner);
    Py_CLEAR(self_of(object)->names);
    Py_CLEAR(self_of(object)->argument);
    Py_CLEAR(self_of(object)->known);
    Py_CLEAR(self_of(object)->found);
    Py_CLEAR(self_of(object)->token);
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

// ---- work in threads

/// A function of a request, to be called on another thread.
struct RequestWork {
    PyObject_HEAD PyObject* function;
    PyObject* request;  ///< a RequestParts
};

PyObject* call_work(PyObject* object, PyObject* args, PyObject* kwargs) {
    auto* const self = reinterpret_cast<RequestWork*>(object);
    const ThreadWork work(self_of(self->request));
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
    PyObject* request = nullptr;
    if (PyContextVar_Get(current_request, nullptr, &request) != 0) return nullptr;
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

PyMethodDef kFunctions[] = {
    {"request_work", request_work, METH_O,
     "Return a function to be called on another thread: in a web request, one whose calls are ranges of the "
     "request, otherwise the same function."},
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

PyMethodDef kMethods[] = {
    {"run", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(run)), METH_FASTCALL, nullptr},
    {"send", send, METH_O, nullptr},
    {"throw", throw_in, METH_VARARGS, nullptr},
    {"close", close, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyMemberDef kMembers[] = {
    {"found", T_OBJECT, offsetof(RequestParts, found), READONLY,
     "The names at the end of the last range, or None."},
    {nullptr, 0, 0, 0, nullptr},
};
PyType_Slot kSlots[] = {
    {Py_tp_doc,
     const_cast<char*>(
         "Await a request, with a range for each time it runs, or call it with run().\n\n"
         "`names(argument)` returns (route, method, name, name of parts, name of work in threads) when "
         "a range ends; `known` is used if `argument` is an ASGI scope with that route and method.")},
    {Py_am_await, reinterpret_cast<void*>(itself)},
    {Py_am_send, reinterpret_cast<void*>(send_value)},
    {Py_tp_iter, reinterpret_cast<void*>(itself)},
    {Py_tp_iternext, reinterpret_cast<void*>(next)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_methods, kMethods},
    {Py_tp_members, kMembers},
    {0, nullptr},
};
PyType_Spec kSpec = {
    "marey.request_parts", sizeof(RequestParts), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    kSlots};

}  // namespace

bool add_request_parts(PyObject* module) noexcept {
    first_name = PyUnicode_InternFromString("request");
    route_key = PyUnicode_InternFromString("route");
    method_key = PyUnicode_InternFromString("method");
    current_request = PyContextVar_New("marey request", nullptr);
    auto* const type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&kSpec));
    if (type != nullptr) type->tp_vectorcall = construct;
    work_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&kWorkSpec));
    return first_name != nullptr && route_key != nullptr && method_key != nullptr &&
           current_request != nullptr && type != nullptr && work_type != nullptr &&
           PyModule_AddType(module, type) == 0 && PyModule_AddFunctions(module, kFunctions) == 0;
}

}  // namespace marey::bindings
