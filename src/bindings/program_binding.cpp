// program_binding.cpp: functions that record a whole program (marey run).
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/bind.h"
#include "sources/python/call_filter.h"
#include "sources/python/code_sites.h"
#include "sources/python/program_start.h"
#include "sources/python/start_frames.h"
#include "sources/python/tracer.h"

namespace marey::bindings {

void bind_program(nanobind::module_& module) {
    module.def(
        "begin_without_calls", &python::begin_without_calls,
        "Start the session set by the environment now. Return False if it records calls: then it does not "
        "start.");
    module.def("begin_with_program", &python::begin_with_program, nanobind::arg("alone"),
               "Start the session set by the environment when the interpreter begins to run the program.");
    module.def("restart_recording", &python::restart_recording,
               "In a forked process: start the session set by the environment, and record calls.");
    module.def("report_child_waits", &python::report_child_waits,
               "From now on, os.wait() and the like tell marey run how the children of this process ended.");
    module.def("check_tracer", &python::check_tracer,
               "Before a recording ends: report a replaced hook as a problem of its trace.");
    module.def("finish_recording", &python::finish_program,
               "End the sessions that have a capture file, as at the end of the process.");
    module.def("finish_with_interpreter", &python::finish_with_interpreter,
               "End the sessions that have a capture file when the interpreter has ended.");
    module.def(
        "name_cells", [](const nanobind::dict& numbers) { python::name_cells(numbers.ptr()); },
        nanobind::arg("numbers"), "Name the code of these files after a notebook's cells, by their numbers.");
    module.def("become_own_thread", &python::become_own_thread,
               "Never record the calling thread: it works for Marey.");
    module.def(
        "count_as_program", &python::count_as_program, nanobind::arg("patterns"),
        "Set the files and modules that fold_libraries does not fold, as patterns like those of include.");
}

}  // namespace marey::bindings
