// snapshot.h: a capture of what a log has by now.
#pragma once

#include <string>

#include <marey/live.h>

#include "record/raw_log.h"

namespace marey {

/// Makes the log of a recording that goes on that of a finished one, which does not belong to a run.
void finish_snapshot(RawLog& log, const SnapshotReason& reason);

}  // namespace marey
