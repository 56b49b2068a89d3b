// compared_counts.h: counts that differ, and which of them only follow from others.
#pragma once

#include "analyze/compare/matched_paths.h"
#include "analyze/compare/run_paths.h"

namespace marey {

/// Fills the counts and their totals. `has`: by side, the nodes that it has.
void compare_counts(Comparison& result, const Comparison::Paths& paths, const std::vector<RunRecord>& runs,
                    const MatchedPaths& matched, const std::vector<bool> (&has)[2]);

}  // namespace marey
