// module.cpp: the extension module kymo._kymo.
#include <nanobind/nanobind.h>

#include "bindings/bind.h"
#include "bindings/range_objects.h"
#include "bindings/traceback_objects.h"
#include "sources/python/tracer.h"

NB_MODULE(_kymo_contents, module) {
    namespace nb = nanobind;
    nb::set_leak_warnings(
        false);  // a program may end while a profiler runs: nothing that it should be told of
    if (!kymo::bindings::add_record_function(module.ptr()) ||
        !kymo::bindings::add_record_function_fast(module.ptr()) ||
        !kymo::bindings::add_mark_functions(module.ptr()) || !kymo::bindings::add_open_ranges(module.ptr()) ||
        !kymo::bindings::add_traceback(module.ptr()))
        throw nb::python_error();
    module.attr("__version__") = KYMO_VERSION;
    kymo::bindings::bind_errors(module);
    kymo::bindings::bind_trace(module);
    kymo::bindings::bind_context(module);
    kymo::bindings::bind_trace_rows(module);
    kymo::bindings::bind_suspended_calls(module);
    kymo::bindings::bind_session(module);
    kymo::bindings::bind_averages(module);
    kymo::bindings::bind_events(module);
    kymo::bindings::bind_tree(module);
    kymo::bindings::bind_arrow(module);
    kymo::bindings::bind_memory(module);
    kymo::bindings::bind_memory_profile(module);
    kymo::bindings::bind_emitters(module);
    kymo::bindings::bind_execution_trace(module);
    kymo::bindings::bind_traceback(module);
    kymo::bindings::bind_program(module);
    kymo::bindings::bind_modules(module);
    kymo::bindings::bind_torch(module);
    kymo::bindings::bind_devices(module);
    kymo::python::add_tracer();
}

// Python 3.11 would run the above again in a sub-interpreter, and take the bindings away from the main one;
// later ones refuse by themselves, with these words.
extern "C" NB_EXPORT PyObject* PyInit__kymo();
extern "C" PyObject* PyInit__kymo() {
    if (PyInterpreterState_Get() == PyInterpreterState_Main()) return PyInit__kymo_contents();
    PyErr_SetString(PyExc_ImportError, "module kymo._kymo does not support loading in subinterpreters");
    return nullptr;
}
