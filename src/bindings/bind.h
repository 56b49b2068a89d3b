// bind.h: one function for each part of the extension module.
#pragma once

#include <nanobind/nanobind.h>

namespace marey::bindings {

using Binding = void(nanobind::module_& module);

Binding bind_errors, bind_marks, bind_owned_ranges, bind_trace, bind_context, bind_messages, bind_session,
    bind_averages, bind_events, bind_tree, bind_view, bind_arrow, bind_results, bind_memory,
    bind_memory_profile, bind_emitters, bind_execution_trace, bind_traceback, bind_clock, bind_program,
    bind_modules, bind_torch, bind_devices;

}  // namespace marey::bindings
