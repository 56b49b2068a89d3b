// log_scan.h: the first pass over a log chunk: the threads of its records, their number, and where the long
// ones are.
#pragma once

#include <cstdint>
#include <vector>

#include "collect/session_filter.h"
#include "record/raw_log.h"

namespace marey {

/// Consecutive records of one thread within one span.
struct LogPiece {
    const LogSpan* span = nullptr;
    const std::uint32_t* longs = nullptr;  ///< offsets of its long records in the span, ascending
    std::uint32_t long_count = 0;
    std::uint32_t begin = 0;  ///< bytes in the span
    std::uint32_t end = 0;
    std::uint32_t thread = 0;

    // Upper bounds for the rows in the window.
    std::uint32_t ranges = 0;
    std::uint32_t sequenced = 0;  ///< of them: SequencedRanges
    std::uint32_t parts = 0;      ///< of them: parts of calls
    std::uint32_t instants = 0;
    std::uint32_t counters = 0;
    std::uint32_t samples = 0;  ///< also outside the window
    bool has_async = false;     ///< AsyncBegin or AsyncEnd
    bool has_marks = false;
    bool has_device = false;    ///< DeviceWork or DeviceCall
    std::uint64_t dropped = 0;  ///< records counted by Dropped records within the window
    std::uint64_t unknown = 0;  ///< records of unknown kinds
};

struct SpanScan {
    std::vector<std::uint32_t> longs;
    std::vector<LogPiece> pieces;  ///< in order; their `longs` point into this object
    std::uint64_t min_start = ~std::uint64_t{0};
    std::uint64_t latest = 0;  ///< the latest time in it
};

/// Reads the span once, forward. `filter.stop_ticks` may still be unknown (the maximum). Stops at an
/// incomplete record.
SpanScan scan_span(const LogSpan& span, const SessionFilter& filter);

}  // namespace marey
