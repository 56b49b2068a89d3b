// monitoring.h: Python and C calls through sys.monitoring: Python 3.12 and later.
#pragma once

#include <Python.h>

#include <cstdint>

namespace marey::python {

/// Both need the GIL. `all_c_calls`: call events stay on where Python functions are called too. False: no
/// tool id is free.
bool start_monitoring(bool c_calls, bool all_c_calls) noexcept;
void stop_monitoring() noexcept;
/// The filter is another one, or the kinds of calls are: calls that are open stay so, unless they are into C
/// and such are not recorded any more.
void change_monitoring(bool c_calls, bool all_c_calls) noexcept;
/// Takes the hook out though sessions run: calls that are open end now, unfinished.
void pause_monitoring() noexcept;
/// Whether the program has left the tool id and its events alone. Needs the GIL.
bool is_monitoring_intact() noexcept;
/// The calling thread is about to open a range: its calls from before are opened.
void prepare_monitored_thread() noexcept;
/// How many instructions were switched off, since this was last asked, though they have called functions of
/// C: what they call in C later is missing. Any thread.
std::uint64_t monitoring_lost_instructions() noexcept;
/// In the child of a fork: the other threads are not there, whatever they were doing.
void monitoring_forked() noexcept;

}  // namespace marey::python
