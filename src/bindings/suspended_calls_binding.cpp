// suspended_calls_binding.cpp: suspended calls and tasks as rows for marey.results.suspended_calls.
#include <marey/suspended_calls.h>
#include <nanobind/nanobind.h>

#include "bindings/bind.h"
#include "bindings/trace_values.h"

namespace nb = nanobind;

namespace marey::bindings {
namespace {

nb::object text_or_none(const Trace& trace, StringId id) {
    return id == 0 ? nb::none() : text_object(trace.string(id));
}

nb::list calls_of(const Trace& trace) {
    nb::list rows;
    for (const SuspendedCall& call : suspended_calls(trace)) {
        rows.append(nb::make_tuple(text_object(trace.range_name(call.first_part)), call.number, call.start_ns,
                                   call.end_ns, call.running_ns, call.suspended_ns, call.parts,
                                   call.began_before, call.is_finished, text_or_none(trace, call.task)));
    }
    return rows;
}

nb::list tasks_of(const Trace& trace) {
    nb::list rows;
    for (const TaskTimes& task : tasks(trace)) {
        nb::list threads;
        for (const Row thread : task.threads) threads.append(trace.threads()[thread].os_tid);
        rows.append(nb::make_tuple(text_object(trace.string(task.name)),
                                   text_object(trace.string(task.coroutine)), task.number, task.start_ns,
                                   task.end_ns, task.run_ns, task.await_ns, task.steps, nb::tuple(threads),
                                   task.is_finished));
    }
    return rows;
}

}  // namespace

void bind_suspended_calls(nb::module_& module) {
    module.def("suspended_calls", calls_of, nb::arg("trace"));
    module.def("tasks", tasks_of, nb::arg("trace"));
}

}  // namespace marey::bindings
