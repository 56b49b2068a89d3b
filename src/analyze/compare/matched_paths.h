// matched_paths.h: which paths of the old runs became which paths of the new ones.
#pragma once

#include "analyze/compare/run_paths.h"

namespace marey {

struct MatchedPaths {
    std::vector<RowMatch> match;         ///< by node; Path if both sides have it, or neither
    std::vector<std::uint32_t> partner;  ///< by node: the path on the other side; kNoNode: none, or the same
    std::vector<std::uint32_t> old_of;   ///< by name: the old name of a new one; kNoNode: none
    std::vector<RowMatch> name_match;    ///< by name; Path if both sides have it
    std::vector<std::uint32_t> renamed;  ///< by name: the new name of an old one, or the name itself

    MatchedPaths(const Comparison::Paths& paths, const std::vector<bool> (&has)[2]);
};

}  // namespace marey
