// program_start.h: records a program from its first line, and the processes that it forks, and how
// its children ended, as it learns it from os.wait().
#pragma once

namespace marey::python {

/// Called with the GIL while the interpreter starts: the session set by the environment starts with the
/// program's first line, without the calls of the interpreter's startup. If it runs already, because the
/// library was loaded first, its calls start there. `alone`: the settings are then removed from the
/// environment, so that other processes do not record.
void begin_with_program(bool alone);

/// Starts the session set by the environment now. False: it records calls, and was not started.
bool begin_without_calls() noexcept;

/// Called with the GIL in the child of a fork: starts the session set by the environment, and records calls.
void restart_recording() noexcept;

/// For a process that ends with _exit(): completes its captures.
void finish_program() noexcept;
/// The same when the interpreter has ended, for a process that then ends by a signal.
void finish_with_interpreter() noexcept;

/// From now on, os.wait(), os.waitpid() and the like report which child ended, and how
/// (record/process_report.h). They behave as before, and show the same name, module and documentation. The
/// caller holds the GIL; on failure, nothing changes.
void report_child_waits() noexcept;

}  // namespace marey::python
