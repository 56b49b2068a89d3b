// requests.h: web requests: their ranges, and the context variable that leads to the request of a task or
// thread.
#pragma once

#include <Python.h>

#include <cstddef>
#include <cstdint>

#include "sources/python/late_range.h"

namespace marey::bindings {

/// The items of the tuple of names: the framework's object for the route, or None; the method; and the names
/// of the request, of its parts, and of its work in threads and tasks.
enum Names : Py_ssize_t { kRoute, kMethod, kRequest, kPart, kThread, kTask, kNames };

/// The requests of one middleware. A Python object.
struct Requests {
    PyObject_HEAD vectorcallfunc call;
    PyObject* app;    ///< an ASGI application, or None
    PyObject* names;  ///< called with the argument of a request: a tuple of names
    static constexpr std::size_t kKnown = 64;
    PyObject* known[kKnown];  ///< tuples of names, by the address of their route; null: none
};

/// One request, or a task of one. A Python object: awaitable, and the `send` of an ASGI application.
struct Request {
    PyObject_HEAD vectorcallfunc call;
    Requests* owner;
    PyObject* argument;  ///< of Requests::names; null when the request has ended
    PyObject* values;    ///< a dict of texts, or null
    PyObject* send;      ///< receives the messages of an ASGI response, or null
    PyObject* inner;     ///< a coroutine or another iterator; null: the request is not awaited, or no longer
    PyObject* found;     ///< the tuple of names, once a part has ended; else null
    PyObject* token;     ///< of the context variable, while the request is set there; else null
    python::LateRange range;
    long long status;
    long long bytes;
    bool is_task;
    bool has_begun;    ///< its first part has ended
    bool is_live;      ///< it is one of the live calls
    bool ends_itself;  ///< when its coroutine ends
};

inline Request* request_of(PyObject* object) noexcept {
    return reinterpret_cast<Request*>(object);
}

/// Takes the Python error away while code runs that leaves none.
class KeptError {
  public:
    KeptError() noexcept {
        if (PyErr_Occurred() != nullptr) PyErr_Fetch(&type_, &value_, &traceback_);
    }
    ~KeptError() {
        if (type_ != nullptr) PyErr_Restore(type_, value_, traceback_);
    }
    KeptError(const KeptError&) = delete;
    KeptError& operator=(const KeptError&) = delete;
    bool is(PyObject* type) const noexcept {
        return type_ != nullptr && PyErr_GivenExceptionMatches(type_, type) != 0;
    }

  private:
    PyObject *type_ = nullptr, *value_ = nullptr, *traceback_ = nullptr;
};

/// Begins the range of a request. `nests`: it nests with the other ranges of this thread; otherwise it is
/// async.
void begin_request(Request* request, bool nests) noexcept;
/// Ends it, with its status, size and values. Does nothing if it has ended. No Python error is set.
void end_request(Request* request) noexcept;
/// Returns the names, borrowed; null: unknown. No Python error is set.
PyObject* names_of(Request* request) noexcept;
/// Passes an ASGI message on, and notes the status and the size of the response. A vectorcall.
PyObject* send_message(PyObject* request, PyObject* const* args, std::size_t flagged_count,
                       PyObject* keywords);

/// The request of the current contextvars.Context, as a new reference; null: none.
PyObject* current_request() noexcept;
/// Sets it. Returns a token; null, without an error: out of memory.
PyObject* enter_request(Request* request) noexcept;
/// Takes the token. In another contextvars.Context the variable keeps its value.
void leave_request(PyObject* token) noexcept;

/// A range of a request, open for the lifetime of the object.
class RequestRange {
  protected:
    explicit RequestRange(Request* request) noexcept;
    void end(Names which) noexcept;

    Request* request_;
    python::LateRange range_{};
};

/// One time that a request, or a task of one, runs.
class Part : RequestRange {
  public:
    explicit Part(Request* request) noexcept;
    ~Part();
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;

    bool is_last = false;

  private:
    void begin_live(bool is_start) noexcept;

    const std::uint64_t start_;  ///< of the range, if it is recorded
};

/// Work of a request on another thread.
class ThreadWork : RequestRange {
  public:
    explicit ThreadWork(Request* request) noexcept : RequestRange(request), token_(enter_request(request)) {}
    ~ThreadWork();
    ThreadWork(const ThreadWork&) = delete;
    ThreadWork& operator=(const ThreadWork&) = delete;

  private:
    PyObject* const token_;
};

/// False with a Python error set on failure.
bool make_request_texts() noexcept;

}  // namespace marey::bindings
