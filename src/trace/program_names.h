// program_names.h: the names under which viewers show processes and threads.
#pragma once

#include <optional>

#include <marey/trace.h>

namespace marey {

/// The script or module that a process runs, if its executable is a Python interpreter: "train.py", "pytest".
std::optional<std::string> python_program(const Trace& trace, const ProcessInfo& process);

/// A process as reports name it: "rank 3: train.py (1234)".
std::string process_label(const Trace& trace, const ProcessInfo& process);

/// A thread's name. The main thread of a Python program is "MainThread", as in Python, unless the program
/// gave it another name.
std::string shown_thread_name(const Trace& trace, const ThreadInfo& thread);

}  // namespace marey
