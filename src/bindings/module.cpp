// module.cpp: the extension module marey._marey.
#include <nanobind/nanobind.h>

#include "bindings/bind.h"
#include "bindings/range_objects.h"
#include "bindings/traceback_objects.h"
#include "sources/python/tracer.h"

NB_MODULE(_marey_contents, module) {
    namespace nb = nanobind;
    nb::set_leak_warnings(
        false);  // a program may end while a profiler runs: leak warnings would only be noise
    if (!marey::bindings::add_record_function(module.ptr()) ||
        !marey::bindings::add_record_function_fast(module.ptr()) ||
        !marey::bindings::add_parts(module.ptr()) || !marey::bindings::add_traceback(module.ptr()))
        throw nb::python_error();
    module.attr("__version__") = MAREY_VERSION;
    marey::bindings::bind_errors(module);
    marey::bindings::bind_marks(module);
    marey::bindings::bind_owned_ranges(module);
    marey::bindings::bind_trace(module);
    marey::bindings::bind_context(module);
    marey::bindings::bind_messages(module);
    marey::bindings::bind_suspended_calls(module);
    marey::bindings::bind_session(module);
    marey::bindings::bind_averages(module);
    marey::bindings::bind_events(module);
    marey::bindings::bind_tree(module);
    marey::bindings::bind_view(module);
    marey::bindings::bind_arrow(module);
    marey::bindings::bind_results(module);
    marey::bindings::bind_memory(module);
    marey::bindings::bind_memory_profile(module);
    marey::bindings::bind_emitters(module);
    marey::bindings::bind_execution_trace(module);
    marey::bindings::bind_traceback(module);
    marey::bindings::bind_clock(module);
    marey::bindings::bind_program(module);
    marey::bindings::bind_modules(module);
    marey::bindings::bind_torch(module);
    marey::bindings::bind_devices(module);
    marey::python::add_tracer();
}

// Python 3.11 would initialize the module again in a subinterpreter and break it in the main one. Later
// versions refuse by themselves, with this message.
extern "C" NB_EXPORT PyObject* PyInit__marey();
extern "C" PyObject* PyInit__marey() {
    if (PyInterpreterState_Get() == PyInterpreterState_Main()) return PyInit__marey_contents();
    PyErr_SetString(PyExc_ImportError, "module marey._marey does not support loading in subinterpreters");
    return nullptr;
}
