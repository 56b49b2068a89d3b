// call_result.cpp: the columns of suspended calls and of the tasks of event loops.
#include <marey/results.h>
#include <marey/suspended_calls.h>

#include "analyze/result_keys.h"

namespace marey {
namespace call_columns {
namespace {
using enum ResultUnit;
using enum ResultShown;

template <class T>
RowColumn<OfTrace<T>> pid_column() {
    return {"pid", [](auto& r) { return process_id(r.trace, r.it.process); }, "process id", "", No, None};
}

std::vector<std::int64_t> thread_ids(const OfTrace<TaskTimes>& task) {
    std::vector<std::int64_t> ids;
    for (const Row thread : task.it.threads) ids.push_back(task.trace.threads()[thread].os_tid);
    return ids;
}

}  // namespace
}  // namespace call_columns

Result call_result(const Trace& trace) {
    using namespace call_columns;

    using CallRow = OfTrace<SuspendedCall>;
    ResultRows<CallRow> calls("suspended_calls",
                              "Calls of generators and coroutines, each with all of its parts");
    calls.columns({
        pid_column<SuspendedCall>(),
        {"name", [](auto& r) { return std::string(r.trace.range_name(r.it.first_part)); },
         "name of its parts"},
        {"number", &SuspendedCall::number, "its number in the process", "", No, None},
        {"start_ns", &SuspendedCall::start_ns, "start of its first part in the trace", "", No, Time},
        {"end_ns", &SuspendedCall::end_ns, "end of its last part", "", No, Time},
        {"running_ns", &SuspendedCall::running_ns, "time in its parts, with the functions that they called"},
        {"suspended_ns", &SuspendedCall::suspended_ns, "time between its parts"},
        {"parts", &SuspendedCall::parts, "number of parts"},
        {"began_before", &SuspendedCall::began_before, "whether its first part is missing from the trace"},
        {"finished", &SuspendedCall::is_finished, "whether it returned or raised an exception"},
        {"task", [](auto& r) { return text_or_null(r.text(r.it.task)); }, "the task that it ran in"},
    });
    const std::vector<SuspendedCall> all = suspended_calls(trace);
    for (const SuspendedCall& call : all) calls.add({trace, call});
    return made_result(trace, calls);
}

Result task_result(const Trace& trace) {
    using namespace call_columns;

    using TaskRow = OfTrace<TaskTimes>;
    ResultRows<TaskRow> tasks("tasks", "The tasks of event loops");
    tasks.columns({
        pid_column<TaskTimes>(),
        {"name", [](auto& r) { return r.text(r.it.name); }, "name when it first ran", "Task"},
        {"coroutine", [](auto& r) { return r.text(r.it.coroutine); }, "the function that it runs",
         "Coroutine", Name},
        {"number", &TaskTimes::number, "number of that call", "", No, None},
        {"start_ns", &TaskTimes::start_ns, "start of its first step", "", No, Time},
        {"end_ns", &TaskTimes::end_ns, "end of its last step", "", No, Time},
        {"run_ns", &TaskTimes::run_ns, "time in its steps", "Run"},
        {"await_ns", &TaskTimes::await_ns, "time between its steps", "Await"},
        {"steps", &TaskTimes::steps, "number of times it ran", "Steps"},
        {"threads", thread_ids, "system ids of the threads that it ran on"},
        {"finished", &TaskTimes::is_finished, "whether its coroutine returned or raised an exception"},
    });
    const std::vector<TaskTimes> times = marey::tasks(trace);
    for (const TaskTimes& task : times) tasks.add({trace, task});
    return made_result(trace, tasks);
}

}  // namespace marey
