// snapshot.h: a capture of what a log has by now.
#pragma once

#include <string>

#include <marey/live.h>

#include "record/raw_log.h"

namespace marey {

/// Writes the log of a recording that goes on as a complete capture, which does not belong to a run. `out`
/// appears complete or not at all. Throws marey::Error.
void write_snapshot(RawLog log, const std::string& out, const SnapshotReason& reason);

}  // namespace marey
