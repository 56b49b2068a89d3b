// known_waits.h: functions that only wait: for events, other threads and processes, the network or the clock.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// The purpose of a wait.
enum class WaitKind : std::uint8_t {
    None,     ///< not a known wait
    Lock,     ///< a lock that another thread or process holds
    Queue,    ///< an item, or room for one
    Work,     ///< the result or the end of another thread, or a signal from it
    Network,  ///< data or a connection of a socket
    Process,  ///< the end of a process
    Sleep,    ///< the clock
    Events,   ///< new work from outside: requests, connections, signals, input
};

/// The names of these functions: module and qualified name, as in "threading.Condition.wait", or
/// "select.epoll.poll" for a C function. Sorted.
MAREY_API std::span<const std::string> known_waits();

/// Whether the self time of a function is time spent waiting. `name` is one like those.
MAREY_API bool is_known_wait(std::string_view name);

/// The purpose of such a function; None for others.
MAREY_API WaitKind wait_kind(std::string_view name);

/// The same for a site. Functions of the program never are, whatever their names; ranges that it marked are
/// if their first word is "wait", "sleep" or "idle", as in "wait for workers".
MAREY_API bool is_known_wait(const Trace& trace, const SiteInfo& site);
MAREY_API WaitKind wait_kind(const Trace& trace, const SiteInfo& site);

}  // namespace marey
