// program_binding.cpp: what the recording of a whole program takes (marey run).
#include <nanobind/nanobind.h>

#include "bindings/bind.h"
#include "sources/python/program_start.h"
#include "sources/python/tracer.h"

namespace marey::bindings {

void bind_program(nanobind::module_& module) {
    module.def("begin_with_program", &python::begin_with_program, nanobind::arg("alone"),
               "Starts what the environment asks for when the interpreter runs the program itself.");
    module.def("restart_recording", &python::restart_recording,
               "In a forked process: starts what the environment asks for, and the recording of calls.");
    module.def("check_tracer", &python::check_tracer,
               "The recording is about to end: says what is wrong with its hook as a problem of its trace.");
    module.def("finish_recording", &python::finish_program,
               "Ends the sessions that have a file, as the end of the process does.");
    module.def("finish_with_interpreter", &python::finish_with_interpreter,
               "Ends them when the interpreter has ended.");
}

}  // namespace marey::bindings
