// session_binding.cpp: marey::Session and its options.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <marey/call_pattern.h>
#include <marey/error.h>
#include <marey/observe.h>

#include "bindings/bind.h"
#include "bindings/errors.h"
#include "bindings/guarded_session.h"
#include "sources/python/code_sites.h"
#include "sources/python/module_calls.h"
#include "sources/python/python_text.h"
#include "sources/python/tracer.h"

namespace nb = nanobind;

namespace marey::bindings {
namespace {

Policy policy_of(const std::string& name) {
    if (name == "stop") return Policy::Stop;
    if (name == "drop") return Policy::Drop;
    if (name == "ring") return Policy::Ring;
    throw nb::value_error(("policy must be 'stop', 'drop' or 'ring', not '" + name + "'").c_str());
}

Threads threads_of(const std::string& name) {
    if (name == "all") return Threads::All;
    if (name == "tasks") return Threads::Tasks;
    throw nb::value_error(("threads must be 'all' or 'tasks', not '" + name + "'").c_str());
}

// True, False, "fast" (the same as True) or "all".
void set_c_calls(SessionOptions& options, const nb::object& c_calls) {
    if (!options.with_stack) return;
    bool is_wanted = true;
    bool is_all = false;
    if (nb::isinstance<nb::str>(c_calls)) {
        const auto text = nb::cast<std::string>(c_calls);
        if (text != "fast" && text != "all")
            throw nb::value_error(
                ("c_calls must be True, False, 'fast' or 'all', not '" + text + "'").c_str());
        is_all = text == "all";
    } else {
        const int is_true = PyObject_IsTrue(c_calls.ptr());
        if (is_true < 0) throw nb::python_error();
        is_wanted = is_true != 0;
    }
    constexpr std::uint32_t kCalls = 1u << static_cast<unsigned>(Scope::CFunction);
    std::uint32_t scopes = options.scopes.empty() ? ScopeSet::all().bits() : options.scopes.bits();
    if (!is_wanted) scopes &= ~kCalls;
    options.scopes = ScopeSet::from_bits(scopes);
    if (const char* const why = python::tracer_error((scopes & kCalls) != 0)) throw Error(why);
    python::prepare_tracer(is_all);
}

std::vector<std::string> patterns_of(const nb::object& given, const char* option) {
    std::vector<std::string> patterns;
    // A single str is not a list of patterns, although it could be iterated over.
    if (nb::isinstance<nb::str>(given) || nb::isinstance<nb::bytes>(given) || !PySequence_Check(given.ptr()))
        throw nb::type_error((std::string(option) + " must be a sequence of patterns").c_str());
    for (const nb::handle each : given) {
        if (!nb::isinstance<nb::str>(each))
            throw nb::type_error((std::string(option) + ": a pattern must be a str, not " +
                                  nb::cast<std::string>(nb::str(each.type().attr("__name__"))))
                                     .c_str());
        python::with_text(each.ptr(), [&](std::string_view text) { patterns.emplace_back(text); });
        if (const char* const fault = call_pattern_error(patterns.back()))
            throw nb::value_error(
                (std::string(option) + ": the pattern '" + patterns.back().c_str() + "' " + fault).c_str());
    }
    return patterns;
}

template <class Number>
Number number_of(const nb::int_& given, const char* option) {
    const unsigned long long number = PyLong_AsUnsignedLongLong(given.ptr());
    const bool is_outside = PyErr_Occurred() != nullptr;  // less than 0, or more than 64 bits
    PyErr_Clear();
    if (is_outside || number > std::numeric_limits<Number>::max())
        throw nb::value_error((std::string(option) + " must be a number from 0 to " +
                               std::to_string(std::numeric_limits<Number>::max()))
                                  .c_str());
    return static_cast<Number>(number);
}

std::uint64_t ns_of(const nb::object& given, const char* option) {
    constexpr double kMax = 1e15;
    const double us = PyFloat_AsDouble(given.ptr());
    const bool is_number = PyErr_Occurred() == nullptr || PyErr_ExceptionMatches(PyExc_OverflowError) != 0;
    const bool is_inside = PyErr_Occurred() == nullptr && us >= 0 && us <= kMax;
    PyErr_Clear();
    const std::string text = std::string(option) + " must be a number of microseconds from 0 to 1e15";
    if (!is_number) throw nb::type_error(text.c_str());
    if (!is_inside) throw nb::value_error(text.c_str());
    return static_cast<std::uint64_t>(us * 1000);
}

/// Calls a method of a session without the GIL, so that Python threads may call at the same time.
template <class Use>
auto with_session(GuardedSession& session, Use use) {
    const nb::gil_scoped_release released;
    const std::lock_guard lock(session.mutex);
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
    TraceChanges changes;
    changes.drops_forward_links = !forward_links;
    changes.first_id = take_ids(trace);
    changes.has_pytorch_flops = true;
    if (names) changes.rename = python::pytorch_name;
    return Trace::changed(std::move(trace), changes);
}

}  // namespace

PyObject* error_type = nullptr;

void bind_errors(nb::module_& module) {
    error_type = nb::exception<Error>(module, "Error", PyExc_RuntimeError).ptr();
}

void bind_session(nb::module_& module) {
    nb::class_<GuardedSession>(module, "Session", "A recording session, as used by marey.profile.")
        .def(nb::init<>())
        .def(
            "start",
            [](GuardedSession& session, const std::string& name, const std::string& output,
               const nb::int_& max_bytes, const std::string& policy, const std::string& threads,
               std::uint32_t scopes, bool record_shapes, bool concrete_inputs, bool profile_memory,
               bool with_flops, bool with_stack, bool with_modules, const nb::object& c_calls,
               const nb::object& include, const nb::object& exclude, bool fold_libraries,
               const nb::object& min_duration_us, const nb::int_& max_depth, const nb::int_& call_budget,
               bool call_lines, const std::vector<std::string>& devices, std::uint32_t device_activities) {
                SessionOptions options;
                options.name = name;
                options.output = output;
                options.max_bytes = number_of<std::uint64_t>(max_bytes, "max_bytes");
                options.policy = policy_of(policy);
                options.threads = threads_of(threads);
                options.scopes = ScopeSet::from_bits(scopes);
                options.record_shapes = record_shapes;
                options.concrete_inputs = concrete_inputs;
                options.profile_memory = profile_memory;
                options.with_flops = with_flops;
                options.with_stack = with_stack;
                options.with_modules = with_modules;
                options.calls.include = patterns_of(include, "include");
                options.calls.exclude = patterns_of(exclude, "exclude");
                options.calls.fold_libraries = fold_libraries;
                options.calls.min_duration_ns = ns_of(min_duration_us, "min_duration_us");
                options.calls.max_depth = number_of<std::uint32_t>(max_depth, "max_depth");
                options.calls.budget = number_of<std::uint64_t>(call_budget, "call_budget");
                options.calls.lines = call_lines;
                options.devices = devices;
                options.device_activities = device_activities;
                set_c_calls(options, c_calls);
                with_session(session, [&](Session& own) { own.start(options); });
                if (options.with_stack) python::describe_modules_again();
                python::apply_tracer();
            },
            nb::kw_only(), nb::arg("name") = "", nb::arg("output") = "",
            nb::arg("max_bytes") = std::uint64_t{1} << 30, nb::arg("policy") = "stop",
            nb::arg("threads") = "all", nb::arg("scopes") = 0, nb::arg("record_shapes") = false,
            nb::arg("concrete_inputs") = false, nb::arg("profile_memory") = false,
            nb::arg("with_flops") = false, nb::arg("with_stack") = false, nb::arg("with_modules") = false,
            nb::arg("c_calls") = true, nb::arg("include") = nb::make_tuple(),
            nb::arg("exclude") = nb::make_tuple(), nb::arg("fold_libraries") = false,
            nb::arg("min_duration_us") = 0.0, nb::arg("max_depth") = 0, nb::arg("call_budget") = 0,
            nb::arg("call_lines") = false, nb::arg("devices") = nb::make_tuple(),
            nb::arg("device_activities") = static_cast<std::uint32_t>(kDeviceDefault),
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
        "check_call_patterns",
        [](const nb::object& patterns, const std::string& option) { patterns_of(patterns, option.c_str()); },
        nb::arg("patterns"), nb::arg("option"),
        "Raise an error that names the option if a pattern is invalid.");
    module.def("hold_tracer", &python::hold_tracer, "Postpone hooking and unhooking of the call tracer.");
    module.def("release_tracer", &python::release_tracer, "Undo hold_tracer().");
    module.def("set_node_id", &set_node_id, nb::arg("node"),
               "Set the node or rank of this process, as shown in traces and averages.");
    module.def("node_id", &node_id, "Return the value of set_node_id(), or -1.");
}

}  // namespace marey::bindings
