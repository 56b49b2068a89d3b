// control.h: the thread that takes requests, around forks and at the end of the process.
#pragma once

namespace marey {

/// Ends the thread, as the recorder's own: Python warns about threads of a process that forks.
void control_before_fork() noexcept;
void control_after_fork(bool is_child) noexcept;
/// At the end of the process.
void end_control() noexcept;

}  // namespace marey
