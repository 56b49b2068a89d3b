// program_start.h: recording a program from its first line, and in the processes that it forks.
#pragma once

namespace marey::python {

/// To be called while the interpreter starts up, with the GIL: the session that the environment asks for
/// starts with the program's first line, not with the calls by which the interpreter makes itself ready.
/// `alone`: what asks for it is taken out of the environment then, so that other processes do not record.
void begin_with_program(bool alone);

/// In the child of a fork, with the GIL: the session that the environment asks for starts, and calls are
/// recorded.
void restart_recording() noexcept;

/// For a process that ends by _exit(): its captures are complete.
void finish_program() noexcept;
/// The same when the interpreter has ended, for one that ends by a signal then.
void finish_with_interpreter() noexcept;

}  // namespace marey::python
