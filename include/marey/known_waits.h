// known_waits.h: functions that only wait: for events, other threads and processes, the network or the clock.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// The names of these functions: module and qualified name, as in "threading.Condition.wait", or
/// "select.epoll.poll" for a C function. Sorted.
MAREY_API std::span<const std::string> known_waits();

/// Whether the self time of a function is time spent waiting. `name` is one like those.
MAREY_API bool is_known_wait(std::string_view name);

/// The same for a site. Functions of the program never are, whatever their names.
MAREY_API bool is_known_wait(const Trace& trace, const SiteInfo& site);

}  // namespace marey
