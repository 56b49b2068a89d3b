// monitoring.h: records Python and C calls with sys.monitoring: Python 3.12 and later.
#pragma once

#include <Python.h>

#include <cstdint>

namespace marey::python {

/// Both need the GIL. `all_c_calls`: call events stay enabled at sites that also call Python functions.
/// False: no tool id is free.
bool start_monitoring(bool c_calls, bool all_c_calls) noexcept;
void stop_monitoring() noexcept;
/// Applies a changed filter or other kinds of calls: open calls stay open, unless they are calls into C that
/// are not recorded any more.
void change_monitoring(bool c_calls, bool all_c_calls) noexcept;
/// Removes the hook while sessions run: open calls end now, unfinished.
void pause_monitoring() noexcept;
/// Whether the program has not changed the tool id and its events. Needs the GIL.
bool is_monitoring_intact() noexcept;
/// The calling thread is about to open a range: opens its earlier calls.
void prepare_monitored_thread() noexcept;
/// The number of instructions, since the last call, that were switched off although they have called C
/// functions: their later C calls are missing. Any thread.
std::uint64_t monitoring_lost_instructions() noexcept;
/// For the child of a fork: the other threads no longer exist.
void monitoring_forked() noexcept;

}  // namespace marey::python
