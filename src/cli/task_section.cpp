// task_section.cpp: the asyncio tasks of a trace, for reports.
#include "cli/task_section.h"

#include <marey/suspended_calls.h>

#include <algorithm>
#include <vector>

#include "cli/table.h"
#include "cli/text_format.h"

namespace marey::cli {
namespace {

constexpr std::size_t kMaxRows = 10;

}  // namespace

std::string task_section(const Trace& trace, const Terminal& terminal) {
    std::vector<TaskTimes> rows = tasks(trace);
    if (rows.empty()) return "";
    std::stable_sort(rows.begin(), rows.end(),
                     [](const TaskTimes& a, const TaskTimes& b) { return a.run_ns > b.run_ns; });
    Table table({{"Task", true}, {"Coroutine", true, true}, {"Run"}, {"Await"}, {"Steps"}});
    for (std::size_t i = 0; i < std::min(rows.size(), kMaxRows); ++i) {
        const TaskTimes& task = rows[i];
        table.add({printable(trace.string(task.name)), printable(trace.string(task.coroutine)),
                   format_duration(static_cast<double>(task.run_ns)),
                   format_duration(static_cast<double>(task.await_ns)), format_count(task.steps)});
    }
    std::string text = "\n" + table.text(terminal);
    if (rows.size() > kMaxRows)
        text += "... and " + format_plural(rows.size() - kMaxRows, "more task") + "\n";
    return text;
}

}  // namespace marey::cli
