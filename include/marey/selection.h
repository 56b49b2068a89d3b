// selection.h: a part of a trace: a span of time and some of its tracks.
#pragma once

#include <cstdint>
#include <vector>

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// The part of a trace to keep. Times are those of the trace's tables.
struct Selection {
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
    std::vector<Row> tracks{};  ///< in ascending order; empty: all
    friend bool operator==(const Selection&, const Selection&) = default;
};

/// Whether a selection contains the whole trace.
MAREY_API bool selects_everything(const Trace& trace, const Selection& selection);

/// Returns the selected part as a trace whose window is the selected time, so that every analysis clips to it
/// as it clips to a session's window. Contains the ranges of the selected tracks that touch the time: those
/// that end after its begin, or have no length and start at it, and start before its end. Threads, tracks,
/// sites and strings keep their numbers; other rows get new ones. Takes linear time in the selected ranges.
MAREY_API Trace select_ranges(const Trace& trace, const Selection& selection);

}  // namespace marey
