// merged_functions.h: the calls of a trace merged by call path, for profile formats that hold no times:
// pprof, callgrind and pstats.
#pragma once

#include <marey/trace.h>

#include "analyze/tree/merged_ranges.h"

namespace marey {

/// A function, as profile formats show the ranges of one or more sites. The texts are UTF-8.
struct ProfileFunction {
    std::string name;
    std::string file;  ///< empty: unknown; for C functions called from Python, their module
    std::uint32_t line = 0;
};

/// No two functions are equal.
struct ProfileFunctions {
    std::vector<ProfileFunction> functions;
    std::vector<std::uint32_t> of_site;  ///< the function of each site
};
ProfileFunctions profile_functions(const Trace& trace);

/// The merged ranges of a trace; the slots of nodes are rows of `functions`.
struct MergedFunctions : ProfileFunctions {
    MergedRanges ranges;
};
MergedFunctions merge_functions(const Trace& trace, bool by_thread = false);

/// Whether a node holds calls of a thread: not a thread's own node, no device work, no async range.
inline bool is_host_call(const PathTree::Node& node) noexcept {
    return !node.is_thread && node.place == Place::Host;
}

}  // namespace marey
