// suspended_calls.cpp: tables of suspended calls and of tasks.
#include <marey/suspended_calls.h>

#include <algorithm>

#include "analyze/calls/call_parts.h"

namespace marey {
namespace {

void sort_by_start(auto& rows) {
    std::ranges::stable_sort(rows, {}, [](const auto& row) { return std::pair(row.start_ns, row.number); });
}

}  // namespace

std::vector<SuspendedCall> suspended_calls(const Trace& trace) {
    CallPartTable calls(trace);
    std::vector<SuspendedCall> rows;
    rows.reserve(calls.calls().size());
    for (const CallParts& parts : calls.calls()) rows.push_back(parts.call);
    sort_by_start(rows);
    return rows;
}

std::vector<TaskTimes> tasks(const Trace& trace) {
    std::vector<TaskTimes> rows;
    if (trace.task_names().empty()) return rows;
    CallPartTable calls(trace);
    for (const TaskInfo& known : trace.task_names()) {
        CallParts* const parts = calls.find({known.process, known.call});
        if (parts == nullptr) continue;
        const SuspendedCall& call = parts->call;
        TaskTimes task{.number = known.call,
                       .process = known.process,
                       .name = known.name,
                       .coroutine = trace.sites()[trace.ranges().site[call.first_part]].name,
                       .start_ns = call.start_ns,
                       .end_ns = call.end_ns,
                       .run_ns = call.running_ns,
                       .await_ns = call.suspended_ns,
                       .steps = call.parts,
                       .is_finished = call.is_finished};
        std::ranges::sort(parts->threads);
        for (const auto& [start, thread] : parts->threads) {
            if (std::ranges::find(task.threads, thread) == task.threads.end()) task.threads.push_back(thread);
        }
        rows.push_back(std::move(task));
    }
    sort_by_start(rows);
    return rows;
}

}  // namespace marey
