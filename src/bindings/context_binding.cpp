// context_binding.cpp: marey::Context for the Python code that propagates it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include <marey/context.h>
#include <marey/remote.h>

#include "bindings/bind.h"
#include "bindings/guarded_session.h"
#include "bindings/inherited_context.h"

namespace nb = nanobind;

namespace marey::bindings {

PyObject* followed_variable = nullptr;

FollowedContext::FollowedContext() noexcept {
    if (PyContextVar_Get(followed_variable, nullptr, &value_) != 0) {
        PyErr_Clear();
        value_ = nullptr;
    }
    if (value_ == nullptr) return;
    Context* context = nullptr;
    if (nb::try_cast(nb::handle(value_), context) && context != nullptr) adoption_.emplace(*context);
}

FollowedContext::~FollowedContext() {
    adoption_.reset();
    Py_XDECREF(value_);
}

namespace {

// Passes arguments, the result and exceptions through without a Python frame.
nb::object run_in(const Context& context, const nb::callable& function, const nb::args& args,
                  const nb::kwargs& kwargs) {
    const ContextAdoption adoption(context);
    return function(*args, **kwargs);
}

void follow(nb::handle variable) {
    if (!variable.is_none() && !PyContextVar_CheckExact(variable.ptr()))
        throw nb::type_error("follow: expected a contextvars.ContextVar or None");
    PyObject* const before = followed_variable;
    followed_variable = variable.is_none() ? nullptr : Py_NewRef(variable.ptr());
    Py_XDECREF(before);
}

// The options of all sessions that record the calling thread, as arguments of Session.start.
nb::dict wanted_options() {
    const SessionOptions options = active_options();
    nb::dict made;
    made["scopes"] = options.scopes.bits();
    for (const SessionOption& option : kSessionOptions) {
        if (const auto* const its = std::get_if<bool SessionOptions::*>(&option.member))
            made[option.name] = options.*(*its);
    }
    return made;
}

void add_capture(GuardedSession& session, const std::string& path) {
    const std::string message = pack_events(Trace::load(path));
    const ScopedLock lock(session.mutex);
    session.session.add_events(message);
}

}  // namespace

void bind_context(nb::module_& module) {
    nb::class_<Context>(
        module, "Context",
        "The context of a thread: the sessions that follow its tasks, and values that C++ libraries "
        "attached. Immutable.")
        .def(nb::init<>(), "Create an empty context.")
        .def_static("current", &Context::current, "Return the context of the calling thread.")
        .def_prop_ro("is_empty", &Context::is_empty)
        .def("run", run_in, nb::arg("function"), nb::arg("args"), nb::arg("kwargs"),
             nb::sig("def run(self, function, /, *args, **kwargs)"),
             "Call a function with the calling thread in this context, and return its result.")
        .def(
            "adopt", [](const Context& context) { adopt(context); },
            "Set the context of the calling thread permanently.");
    module.def("active_options", wanted_options,
               "Return the combined options of the sessions that record the calling thread.");
    module.def("add_capture", add_capture, nb::arg("session"), nb::arg("path"),
               nb::call_guard<nb::gil_scoped_release>(),
               "Add the events in the capture of another process on this machine to a running session.");
    module.def("follow", follow, nb::arg("variable").none(),
               "Set the contextvars.ContextVar with the Context in which Python ranges begin, or None.");
}

}  // namespace marey::bindings
