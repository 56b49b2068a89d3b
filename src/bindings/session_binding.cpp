// session_binding.cpp: marey::Session and its options.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <marey/control.h>
#include <marey/error.h>
#include <marey/live.h>
#include <marey/observe.h>

#include "bindings/bind.h"
#include "bindings/guarded_session.h"
#include "bindings/range_objects.h"
#include "bindings/trace_values.h"
#include "sources/python/code_sites.h"
#include "sources/python/module_calls.h"
#include "sources/python/python_text.h"
#include "sources/python/tracer.h"

namespace nb = nanobind;

namespace marey::bindings {
namespace {

template <class... Parts>
[[noreturn]] void raise(PyObject* type, const char* format, Parts... parts) {
    PyErr_Clear();
    PyErr_Format(type, format, parts...);
    throw nb::python_error();
}

// True, False, "fast" (the same as True) or "all".
void set_c_calls(SessionOptions& options, nb::handle c_calls) {
    if (!options.with_stack) return;
    const auto is = [&](const char* word) {
        return PyUnicode_Check(c_calls.ptr()) && PyUnicode_CompareWithASCIIString(c_calls.ptr(), word) == 0;
    };
    if (PyUnicode_Check(c_calls.ptr()) && !is("fast") && !is("all"))
        raise(PyExc_ValueError, "c_calls must be True, False, 'fast' or 'all', not %R", c_calls.ptr());
    const int is_wanted = PyObject_IsTrue(c_calls.ptr());
    if (is_wanted < 0) throw nb::python_error();
    constexpr std::uint32_t kCalls = 1u << static_cast<unsigned>(Scope::CFunction);
    std::uint32_t scopes = options.scopes.empty() ? ScopeSet::all().bits() : options.scopes.bits();
    if (is_wanted == 0) scopes &= ~kCalls;
    options.scopes = ScopeSet::from_bits(scopes);
    if (const char* const why = python::tracer_error((scopes & kCalls) != 0)) throw Error(why);
    python::prepare_tracer(is("all"));
}

void require(bool is_type, const SessionOption& option, const char* expected, nb::handle given) {
    if (!is_type) raise(PyExc_TypeError, "%s must be %s, not %R", option.name, expected, given.ptr());
}

void set_text(SessionOptions& options, const SessionOption& option, nb::handle given) {
    try {
        set_option(options, option, python::text_of(given.ptr()));
    } catch (const Error& error) {
        raise(PyExc_ValueError, "%s: %s", option.name, error.what());
    }
}

template <class Number>
Number number_of(const SessionOption& option, nb::handle given) {
    require(PyLong_Check(given.ptr()) && !PyBool_Check(given.ptr()), option, "an integer", given);
    constexpr unsigned long long kMost = std::numeric_limits<Number>::max();
    const unsigned long long number = PyLong_AsUnsignedLongLong(given.ptr());
    if (PyErr_Occurred() != nullptr || number > kMost)
        raise(PyExc_ValueError, "%s must be a number from 0 to %llu", option.name, kMost);
    return static_cast<Number>(number);
}

std::uint64_t ns_of(const SessionOption& option, nb::handle given) {
    require(PyNumber_Check(given.ptr()) != 0 && !PyBool_Check(given.ptr()), option, "a number", given);
    const bool is_seconds = option.form == OptionForm::Seconds;
    const double number = PyFloat_AsDouble(given.ptr());
    if (PyErr_Occurred() != nullptr || !(number >= 0 && number <= (is_seconds ? 1e9 : 1e15)))
        raise(PyExc_ValueError, "%s must be a number of %s", option.name,
              is_seconds ? "seconds from 0 to 1e9" : "microseconds from 0 to 1e15");
    return static_cast<std::uint64_t>(number * (is_seconds ? 1e9 : 1e3));
}

/// A single str is not a sequence of texts, although it could be iterated over.
nb::tuple texts_of(const SessionOption& option, nb::handle given) {
    const bool is_one = PyUnicode_Check(given.ptr()) || PyBytes_Check(given.ptr());
    auto texts = nb::steal<nb::tuple>(is_one ? nullptr : PySequence_Tuple(given.ptr()));
    bool is_type = texts.is_valid();
    for (std::size_t i = 0; is_type && i < texts.size(); ++i) is_type = PyUnicode_Check(texts[i].ptr());
    require(is_type, option, "a sequence of str", given);
    return texts;
}

/// Sets an option from its keyword, and returns the value to set it from again.
nb::object set_keyword(SessionOptions& options, const SessionOption& option, nb::object given) {
    option.visit(options, [&](auto& value) {
        using Value = std::remove_reference_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, bool>) {
            require(PyBool_Check(given.ptr()), option, "True or False", given);
            value = given.is(Py_True);
        } else if constexpr (std::is_same_v<Value, ScopeSet>) {
            value = ScopeSet::from_bits(number_of<std::uint32_t>(option, given));
        } else if constexpr (std::is_unsigned_v<Value>) {
            const bool is_time = option.form == OptionForm::Nanoseconds || option.form == OptionForm::Seconds;
            value = is_time ? static_cast<Value>(ns_of(option, given)) : number_of<Value>(option, given);
        } else if constexpr (std::is_same_v<Value, std::vector<std::string>>) {
            given = texts_of(option, given);
            if (option.form != OptionForm::Patterns) value = nb::cast<Value>(given);
            if (option.form == OptionForm::Patterns)
                for (const nb::handle each : given) set_text(options, option, each);
        } else {
            require(PyUnicode_Check(given.ptr()), option, "a str", given);
            set_text(options, option, given);
        }
    });
    return given;
}

/// Sets the options that the keywords name, and returns the keywords to set them from again.
nb::dict set_keywords(SessionOptions& options, const nb::kwargs& given) {
    nb::dict kept;
    for (const auto& [key, value] : given) {
        const nb::handle name = key;
        const auto* const option = std::find_if(
            std::begin(kSessionOptions), std::end(kSessionOptions), [&](const SessionOption& each) {
                return PyUnicode_CompareWithASCIIString(name.ptr(), each.name) == 0;
            });
        if (option == std::end(kSessionOptions))
            raise(PyExc_TypeError, "%R is not an option of a session", name.ptr());
        kept[name] = set_keyword(options, *option, nb::borrow(value));
    }
    return kept;
}

/// Calls a method of a session without the GIL, so that Python threads may call at the same time.
auto with_session(GuardedSession& session, auto use) {
    const nb::gil_scoped_release released;
    const ScopedLock lock(session.mutex);
    return std::invoke(use, session.session);
}

/// Ids for as many events as a trace has, from the numbers below 2^32 that PyTorch uses.
std::uint64_t take_ids(const Trace& trace) noexcept {
    static std::atomic<std::uint64_t> taken{0};
    const std::uint64_t count = trace.ranges().size() + trace.memory().size();
    const std::uint64_t first = taken.fetch_add(count);
    constexpr std::uint64_t kEnd = std::uint64_t{1} << 32;
    return first + count < kEnd ? first : 0;  // there are no more
}

Trace stop_for_pytorch(GuardedSession& session, bool names, bool forward_links) {
    python::check_tracer();
    Trace trace = with_session(session, [](Session& own) {
        Trace built = own.stop();
        own = Session();  // so that the tables can be changed in place
        return built;
    });
    python::apply_tracer();
    TraceChanges changes{.rename = nullptr,
                         .drops_forward_links = !forward_links,
                         .first_id = take_ids(trace),
                         .has_pytorch_flops = true};
    if (names) changes.rename = python::pytorch_name;
    return Trace::changed(std::move(trace), changes);
}

}  // namespace

PyObject* error_type = nullptr;

void bind_errors(nb::module_& module) {
    error_type = nb::exception<Error>(module, "Error", PyExc_RuntimeError).ptr();
    // nanobind's own translator fails for texts that are not UTF-8, such as some file names.
    nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
        try {
            std::rethrow_exception(thrown);
        } catch (const Error& error) {
            PyErr_SetObject(error_type, text_object(error.what()).ptr());
        }
    });
}

void bind_session(nb::module_& module) {
    nb::class_<GuardedSession>(module, "Session", "A recording session, as used by marey.profile.")
        .def(nb::init<>())
        .def(
            "start",
            [](GuardedSession& session, nb::handle c_calls, const nb::kwargs& keywords) {
                SessionOptions options;
                set_keywords(options, keywords);
                set_c_calls(options, c_calls);
                with_session(session, [&](Session& own) { own.start(options); });
                if (options.with_stack) python::describe_modules_again();
                python::apply_tracer();
            },
            nb::kw_only(), nb::arg("c_calls") = true, nb::arg("options"),
            nb::sig("def start(self, *, c_calls: bool | str = True, **options: typing.Any) -> None"),
            "Start to record. marey.profile describes most of the options.")
        .def(
            "stop",
            [](GuardedSession& self) {
                python::check_tracer();
                Trace trace = with_session(self, &Session::stop);
                python::apply_tracer();
                return trace;
            },
            "Stop recording and return the trace.")
        .def("stop_for_pytorch", stop_for_pytorch, nb::kw_only(), nb::arg("names"), nb::arg("forward_links"),
             "Stop recording and return the trace as PyTorch's profiler shows it. Call nothing afterwards.")
        .def(
            "snapshot",
            [](GuardedSession& self) {
                python::check_tracer();
                return with_session(self, &Session::snapshot);
            },
            "Return a trace of the records so far, without stopping.")
        .def(
            "discard",
            [](GuardedSession& self) {
                with_session(self, &Session::discard);
                python::apply_tracer();
            },
            "Stop recording without building a trace.")
        .def(
            "add_metadata",
            [](GuardedSession& self, std::string_view key, std::string_view json) {
                with_session(self, [&](Session& own) { own.add_metadata(key, json); });
            },
            nb::arg("key"), nb::arg("json"), "Add a JSON value, given as text, to the metadata of the trace.")
        .def(
            "record_devices",
            [](GuardedSession& self, bool is_wanted) {
                with_session(self, [&](Session& own) { own.record_devices(is_wanted); });
            },
            nb::arg("is_wanted"), "Pause or resume the recording of device activity.")
        .def_prop_ro(
            "is_running", [](GuardedSession& self) { return with_session(self, &Session::is_running); },
            "Whether it is recording.")
        .def_prop_ro(
            "output_path",
            [](GuardedSession& self) {
                return with_session(self, [](Session& own) { return std::string(own.output_path()); });
            },
            "The path of the capture file, or an empty string.")
        .def_prop_ro(
            "id", [](GuardedSession& self) { return with_session(self, &Session::id); },
            "The number of the session in this process.");
    module.def(
        "check_options",
        [](const nb::kwargs& options) {
            SessionOptions checked;
            return set_keywords(checked, options);
        },
        nb::sig("def check_options(**options: typing.Any) -> dict[str, typing.Any]"),
        "Raise an error that names an invalid option. Return the options, with iterables as tuples.");
    nb::list call_options;
    for (const SessionOption& option : kSessionOptions) {
        if (option.is_for_calls()) call_options.append(option.name);
    }
    module.attr("CALL_OPTIONS") = nb::tuple(call_options);
    module.def("path_of_rank", &path_of_rank, nb::arg("path"), nb::arg("rank"),
               "Return the path of a rank's capture: \"app.rank3.marey\" for \"app.marey\" and rank 3.");
    module.def(
        "write_snapshot",
        [](const std::string& path, const std::string& out, std::int64_t last_ns, const std::string& reason) {
            const nb::gil_scoped_release released;
            write_snapshot(path, out, {.log_bytes = 0, .last_ns = last_ns}, {.text = reason});
        },
        nb::arg("path"), nb::arg("out"), nb::arg("last_ns"), nb::arg("reason"),
        "Write the newest part of a capture that is being written as a capture of its own.");
    module.def(
        "own_captures",
        [] {
            std::vector<std::string> captures;
            for (RecordedProcess& process : recorded_processes(::getpid()))
                captures.push_back(std::move(process.capture));
            return captures;
        },
        "Return the paths of the captures that this process writes.");
    module.def("allow_control", &allow_control,
               "Let `marey start` and `marey stop` of this user make recordings of this process.");
    module.def("environment_rank", &environment_rank,
               "Return the rank of this process as set by torchrun, or -1.");
    module.def("hold_tracer", &python::hold_tracer, "Postpone hooking and unhooking of the call tracer.");
    module.def("release_tracer", &python::release_tracer, "Undo hold_tracer().");
    module.def("set_node_id", &set_node_id, nb::arg("node"),
               "Set the node or rank of this process, as shown in traces and averages.");
    module.def("node_id", &node_id, "Return the value of set_node_id(), or -1.");
}

}  // namespace marey::bindings
