// remote_events.h: adds the event messages of a session to its trace.
#pragma once

#include <cstdint>

#include "collect/replayed_log.h"

namespace marey {

/// In `reserved` of a RemoteEventsRecord's head: the message's times are CLOCK_MONOTONIC_RAW of this host.
inline constexpr std::uint16_t kRemoteClockIsOurs = 1 << 0;

/// Adds the traces in the journal's messages to the tables, which are complete by then: at their place in
/// time, cut to the window, linked from their calls.
void add_remote_events(ReplayedLog& state);

}  // namespace marey
