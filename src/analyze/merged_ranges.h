// merged_ranges.h: the ranges of a trace merged by the names around them, and which node each range went to.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analyze/name_slots.h"
#include "analyze/path_tree.h"

namespace marey {

struct MergeOptions {
    bool by_thread = false;  ///< the outermost nodes are threads
    /// Rows, rising: only they and what is nested in them count.
    std::optional<std::vector<Row>> inside;
    bool keep_apart = false;  ///< with `inside`: each of them gets a node of its own
};

struct MergedRanges {
    PathTree tree;
    std::vector<std::uint32_t> node_of;  ///< of each row; kNoRow: left out
};

/// Counts and sums each node's ranges; a suspended call counts once, at its first part. One pass. On devices,
/// annotations have no self time, and a thread's node has the time of work.
MergedRanges merge_ranges(const Trace& trace, const NameSlots& slots, const MergeOptions& options = {});

}  // namespace marey
