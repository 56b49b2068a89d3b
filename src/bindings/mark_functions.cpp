// mark_functions.cpp: begin, end, instant, counter and related functions as plain C functions.
#include <marey/c.h>
#include <marey/range.h>
#include <marey/token.h>

#include <cstdio>
#include <cstring>

#include "bindings/errors.h"
#include "bindings/inherited_context.h"
#include "bindings/range_objects.h"
#include "bindings/site_cache.h"
#include "sources/python/tracer.h"

namespace marey::bindings {
namespace {

[[gnu::always_inline]] inline bool check_name(PyObject* name, const char* function) noexcept {
    if (PyUnicode_Check(name)) [[likely]]
        return true;
    PyErr_Format(PyExc_TypeError, "%s: the name must be a str, not %.80s", function, Py_TYPE(name)->tp_name);
    return false;
}

[[gnu::noinline]] void begin_slow(PyObject* name) noexcept {
    if (detail::should_record(Scope::User)) return marey_begin(site_cache.site(name, Scope::User));
    if (followed_variable != nullptr) {
        const FollowedContext context;
        if (detail::should_record(Scope::User)) return marey_begin(site_cache.site(name, Scope::User));
    }
    marey_begin(0);  // keeps begin() and end() balanced
}

PyObject* begin(PyObject*, PyObject* name) {
    if (!check_name(name, "begin")) return nullptr;
    python::before_range();
    if (!detail::begin_inline(site_cache.known_site(name, Scope::User), Scope::User)) [[unlikely]]
        begin_slow(name);
    Py_RETURN_NONE;
}

// METH_FASTCALL is the function type without arguments that interpreters call directly.
PyObject* end(PyObject*, PyObject* const*, Py_ssize_t count) {
    if (count != 0) [[unlikely]] {
        PyErr_Format(PyExc_TypeError, "end() takes no arguments (%zd given)", count);
        return nullptr;
    }
    if (!detail::end_inline()) [[unlikely]]
        marey_end();
    Py_RETURN_NONE;
}

PyObject* mark_instant(PyObject*, PyObject* name) {
    if (!check_name(name, "instant")) return nullptr;
    open_if_recording(Scope::User,
                      [name]() noexcept { with_text(name, [](std::string_view text) { instant(text); }); });
    Py_RETURN_NONE;
}

PyObject* mark_message(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (count != 3 || !PyUnicode_Check(args[0]) || !PyUnicode_Check(args[1]) || !PyUnicode_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "message_instant(name, message, place) takes 3 texts");
        return nullptr;
    }
    open_if_recording(Scope::User, [args]() noexcept {
        with_text(args[0], [args](std::string_view name) {
            with_text(args[1], [args, name](std::string_view message) {
                with_text(args[2], [name, message](std::string_view place) {
                    instant(name, "message", message, "place", place);
                });
            });
        });
    });
    Py_RETURN_NONE;
}

PyObject* mark_counter(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (count != 2) {
        PyErr_Format(PyExc_TypeError, "counter(name, value) takes 2 arguments (%zd given)", count);
        return nullptr;
    }
    if (!check_name(args[0], "counter")) return nullptr;
    const double value = PyFloat_AsDouble(args[1]);
    if (value == -1 && PyErr_Occurred() != nullptr) return nullptr;
    open_if_recording(Scope::User, [args, value]() noexcept {
        with_text(args[0], [value](std::string_view text) { counter(text, value); });
    });
    Py_RETURN_NONE;
}

PyObject* mark_step(PyObject*, PyObject* number) {
    const long long step = PyLong_AsLongLong(number);
    if (step == -1 && PyErr_Occurred() != nullptr) return nullptr;
    if (detail::should_record(Scope::Step)) {
        char text[32];
        const int length = std::snprintf(text, sizeof text, "Step#%lld", step);
        detail::record_instant({text, static_cast<std::size_t>(length)}, Scope::Step, 0);
    }
    Py_RETURN_NONE;
}

PyObject* name_thread(PyObject*, PyObject* name) {
    if (!check_name(name, "thread_name")) return nullptr;
    with_text(name, [](std::string_view text) { thread_name(text); });
    Py_RETURN_NONE;
}

PyObject* make_token(PyObject*, PyObject*) {
    const Token token = send_token();
    return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(&token), sizeof token);
}

PyObject* take_token(PyObject*, PyObject* bytes) {
    Token token;
    if (!PyBytes_Check(bytes) || PyBytes_GET_SIZE(bytes) != sizeof token) {
        PyErr_SetString(PyExc_ValueError, "receive_token: expected the 24 bytes that send_token() returned");
        return nullptr;
    }
    std::memcpy(&token, PyBytes_AS_STRING(bytes), sizeof token);
    receive_token(token);
    Py_RETURN_NONE;
}

PyObject* ask_recording(PyObject*, PyObject*) {
    return PyBool_FromLong(is_recording() ? 1 : 0);
}

PyMethodDef kFunctions[] = {
    {"begin", begin, METH_O,
     "begin(name, /)\n--\n\nBegin a range that end() ends, for code that cannot use a with statement."},
    {"end", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(end)), METH_FASTCALL,
     "end()\n--\n\nEnd the innermost range that begin() opened on this thread."},
    {"instant", mark_instant, METH_O, "instant(name, /)\n--\n\nMark a point in time."},
    {"message_instant", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(mark_message)),
     METH_FASTCALL,
     "message_instant(name, message, place, /)\n--\n\nMark a point in time, with a message and its place in "
     "the source."},
    {"counter", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(mark_counter)), METH_FASTCALL,
     "counter(name, value, /)\n--\n\nRecord the current value of a counter."},
    {"step_mark", mark_step, METH_O, "step_mark(step, /)\n--\n\nMark a global step in every session."},
    {"thread_name", name_thread, METH_O,
     "thread_name(name, /)\n--\n\nSet the name of the calling thread in traces."},
    {"send_token", make_token, METH_NOARGS,
     "send_token()\n--\n\nRecord that a message is sent now, and return 24 bytes to send with it."},
    {"receive_token", take_token, METH_O,
     "receive_token(token, /)\n--\n\nRecord that the message with this token has been received."},
    {"is_recording", ask_recording, METH_NOARGS,
     "is_recording()\n--\n\nReturn whether a range on this thread would be recorded now."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool add_mark_functions(PyObject* module) noexcept {
    return PyModule_AddFunctions(module, kFunctions) == 0;
}

}  // namespace marey::bindings
