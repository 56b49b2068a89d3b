// mark_functions.cpp: begin, end, instant and counter as plain C functions, which take nanoseconds, and
// related functions.
#include <marey/c.h>
#include <marey/range.h>
#include <marey/token.h>
#include <nanobind/nanobind.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "bindings/bind.h"
#include "bindings/inherited_context.h"
#include "bindings/site_cache.h"
#include "sources/python/tracer.h"

namespace nb = nanobind;

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

void mark_message(nb::str name, nb::str message, nb::str place) {
    open_if_recording(Scope::User, [&]() noexcept {
        with_text(name.ptr(), [&](std::string_view text) {
            with_text(message.ptr(), [&](std::string_view its_message) {
                with_text(place.ptr(), [&](std::string_view its_place) {
                    instant(text, "message", its_message, "place", its_place);
                });
            });
        });
    });
}

void mark_step(std::int64_t step) {
    if (detail::should_record(Scope::Step))
        detail::record_instant("Step#" + std::to_string(step), Scope::Step, 0);
}

nb::bytes make_token() {
    const Token token = send_token();
    return nb::bytes(&token, sizeof token);
}

void take_token(const nb::bytes& bytes) {
    Token token;
    if (bytes.size() != sizeof token)
        throw nb::value_error("receive_token: expected the 24 bytes that send_token() returned");
    std::memcpy(&token, bytes.c_str(), sizeof token);
    receive_token(token);
}

PyMethodDef kFunctions[] = {
    {"begin", begin, METH_O,
     "begin(name, /)\n--\n\nBegin a range that end() ends, for code that cannot use a with statement."},
    {"end", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(end)), METH_FASTCALL,
     "end()\n--\n\nEnd the innermost range that begin() opened on this thread."},
    {"instant", mark_instant, METH_O, "instant(name, /)\n--\n\nMark a point in time."},
    {"counter", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(mark_counter)), METH_FASTCALL,
     "counter(name, value, /)\n--\n\nRecord the current value of a counter."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void bind_marks(nb::module_& module) {
    if (PyModule_AddFunctions(module.ptr(), kFunctions) != 0) throw nb::python_error();
    module.def("message_instant", &mark_message, nb::arg("name"), nb::arg("message"), nb::arg("place"),
               "Mark a point in time, with a message and its place in the source.");
    module.def("step_mark", &mark_step, nb::arg("step"), "Mark a global step in every session.");
    module.def(
        "thread_name",
        [](const nb::str& name) { with_text(name.ptr(), [](std::string_view text) { thread_name(text); }); },
        nb::arg("name"), "Set the name of the calling thread in traces.");
    module.def("send_token", &make_token,
               "Record that a message is sent now, and return 24 bytes to send with it.");
    module.def("receive_token", &take_token, nb::arg("token"),
               "Record that the message with this token has been received.");
    module.def("is_recording", &is_recording, "Return whether a range on this thread would be recorded now.");
}

}  // namespace marey::bindings
