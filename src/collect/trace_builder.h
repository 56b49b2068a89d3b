// trace_builder.h: from a RawLog to a Trace: the only place that depends on both.
#pragma once

#include <memory>

#include <marey/load.h>
#include <marey/trace.h>

#include "collect/journal_reader.h"
#include "record/raw_log.h"

namespace marey {

class ClockFit;

/// Which part of a log to build.
struct ViewRequest {
    std::uint64_t session = 0;  ///< 0: the first session; the whole log when there is none
    unsigned threads = 0;       ///< to build with; 0: as many as there are cores
    bool part_details = true;   ///< false: parts of suspended calls have flags only
    LoadProgress* progress = nullptr;
    /// Of all captures that are on one clock; null: of this log alone.
    std::shared_ptr<const ClockFit> fit{};
    std::string clock{};         ///< with `fit`: its name, as in ProcessInfo
    TraceData* spare = nullptr;  ///< an empty trace: the memory of its range columns is used
};

/// The readings of the clocks in a log.
std::vector<detail::ClockPair> clock_pairs(const RawLog& log, const Journal& journal);

/// Builds the trace of one session. The log is only read and need not outlive the trace. Survives any bytes:
/// unusable records are counted in problems(). Throws marey::Error when the session is not in the log.
Trace build_trace(const RawLog& log, const ViewRequest& request = {});

}  // namespace marey
