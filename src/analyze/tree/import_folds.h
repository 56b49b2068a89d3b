// import_folds.h: Python imports as one range each.
#pragma once

#include <vector>

#include <marey/trace.h>

#include "trace/trace_data.h"

namespace marey {

/// Whether a trace may contain imports that are not folded.
bool has_import_frames(const Trace& trace);

/// Names the outermost range of each import "import NAME", and returns the ranges that are parts of it: the
/// frames of importlib, the C functions that they call, and the module's code itself. They are sorted.
std::vector<Row> fold_imports(TraceData& data);

}  // namespace marey
