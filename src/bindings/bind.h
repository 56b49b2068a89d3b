// bind.h: one function for each part of the extension module.
#pragma once

#include <nanobind/nanobind.h>

namespace marey::bindings {

void bind_errors(nanobind::module_& module);
void bind_marks(nanobind::module_& module);
void bind_owned_ranges(nanobind::module_& module);
void bind_trace(nanobind::module_& module);
void bind_context(nanobind::module_& module);
void bind_messages(nanobind::module_& module);
void bind_suspended_calls(nanobind::module_& module);
void bind_session(nanobind::module_& module);
void bind_averages(nanobind::module_& module);
void bind_events(nanobind::module_& module);
void bind_tree(nanobind::module_& module);
void bind_view(nanobind::module_& module);
void bind_arrow(nanobind::module_& module);
void bind_results(nanobind::module_& module);
void bind_memory(nanobind::module_& module);
void bind_memory_profile(nanobind::module_& module);
void bind_emitters(nanobind::module_& module);
void bind_execution_trace(nanobind::module_& module);
void bind_traceback(nanobind::module_& module);
void bind_clock(nanobind::module_& module);
void bind_program(nanobind::module_& module);
void bind_modules(nanobind::module_& module);
void bind_torch(nanobind::module_& module);
void bind_devices(nanobind::module_& module);

}  // namespace marey::bindings
