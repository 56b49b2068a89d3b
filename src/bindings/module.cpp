// module.cpp: the extension module marey._marey.
#include <nanobind/nanobind.h>

#include "bindings/bind.h"
#include "bindings/range_objects.h"
#include "sources/python/tracer.h"

NB_MODULE(_marey_contents, module) {
    namespace nb = nanobind;
    using namespace marey::bindings;
    nb::set_leak_warnings(
        false);  // a program may end while a profiler runs: leak warnings would only be noise
    if (!add_record_function(module.ptr()) || !add_record_function_fast(module.ptr()) ||
        !add_parts(module.ptr()) || !add_traceback(module.ptr()))
        throw nb::python_error();
    module.attr("__version__") = MAREY_VERSION;
    for (Binding* const bind :
         {bind_errors,   bind_marks,           bind_owned_ranges, bind_trace,  bind_context,
          bind_messages, bind_session,         bind_averages,     bind_events, bind_tree,
          bind_view,     bind_arrow,           bind_results,      bind_memory, bind_memory_profile,
          bind_emitters, bind_execution_trace, bind_traceback,    bind_clock,  bind_program,
          bind_modules,  bind_torch,           bind_devices})
        bind(module);
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
