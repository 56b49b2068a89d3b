// outside.h: looks at any process from outside: the program takes no part in it, and need not be recorded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <marey/detail/export.h>

namespace marey {

/// A call that runs.
struct OutsideFrame {
    std::string name{};           ///< "app.py(3): load", "libc.so.6: read"
    std::int32_t line = 0;        ///< the line of a Python function that runs; 0: not known
    bool is_python = false;       ///< a Python function; otherwise a native one
    bool is_interpreter = false;  ///< a native function of the interpreter
};

/// The purpose of a wait, of a thread that does not run.
enum class OutsideWait : std::uint8_t {
    None,     ///< it runs
    Gil,      ///< the interpreter's lock
    Lock,     ///< a lock, or another thread
    Sleep,    ///< the clock
    Input,    ///< files, sockets, pipes, events
    Process,  ///< the end of another process
    Other,
};
/// "lock" and so on; "" for None.
MAREY_API const char* wait_name(OutsideWait wait) noexcept;

struct OutsideThread {
    std::int64_t os_tid = 0;
    std::string name{};  ///< as the kernel knows it
    OutsideWait wait = OutsideWait::None;
    std::int64_t waits_for = 0;  ///< the thread that has what this one waits for; 0: not known
    bool is_python = false;      ///< the interpreter knows it
    bool holds_gil = false;
    bool is_torn = false;  ///< its Python frames changed during every try to read them
    bool is_cut = false;   ///< it has more outer frames
    /// Native and Python frames in one order, innermost first. Native ones only while the thread waits.
    std::vector<OutsideFrame> frames{};
};

struct OutsideProcess {
    std::int64_t pid = 0;
    std::string program{};  ///< path of its executable
    std::vector<std::string> arguments{};
    std::string python{};                  ///< version of its interpreter, "3.12.1"; "": it has none
    std::int64_t realtime_ns = 0;          ///< when it was looked at, since 1970
    std::vector<OutsideThread> threads{};  ///< the main thread first
    /// Threads that wait for each other in a circle, each for the next one.
    std::vector<std::vector<std::int64_t>> deadlocks{};
};

/// Looks at a process of this machine, with Python 3.11 to 3.14 or without. Reads its memory while it runs:
/// it is not stopped, and nothing in it changes. Throws Error, with the cause and what would help, if that is
/// not possible, or if the process ends or executes another program meanwhile.
MAREY_API OutsideProcess look_at_process(std::int64_t pid);

/// A part of a process that can be seen, or not, for `marey doctor`.
struct OutsideAccess {
    std::string title;
    bool is_available = false;
    std::string fact;
    std::string help;  ///< what would give more
};
/// Throws Error if there is no such process.
MAREY_API std::vector<OutsideAccess> access_to_process(std::int64_t pid);

}  // namespace marey
