// task_section.h: the asyncio tasks of a trace, for reports.
#pragma once

#include <string>

#include <marey/trace.h>

#include "cli/terminal.h"

namespace marey::cli {

/// A table of the tasks that ran longest; empty if there are no tasks.
std::string task_section(const Trace& trace, const Terminal& terminal);

}  // namespace marey::cli
