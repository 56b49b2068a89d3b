// merged_ranges.h: merges ranges by the names of the enclosing ranges, and maps each range to its node.
#pragma once

#include <optional>

#include "analyze/name_slots.h"
#include "analyze/tree/path_tree.h"
#include "analyze/tree/step_ranges.h"

namespace marey {

struct RangeMergeOptions {
    bool by_thread = false;  ///< the outermost nodes are threads
    /// Rows in ascending order: only these ranges and the ranges nested in them count.
    std::optional<std::vector<Row>> inside{};
    /// With `inside`: these steps contain the ranges that they have among events. Null: none.
    const CrossingSteps* crossing = nullptr;
    bool separate_roots = false;  ///< with `inside`: each of these ranges gets a separate node
    /// CallTreeOptions::parts. Not with by_thread and separate_roots.
    std::uint32_t parts = 0;
};

struct MergedRanges {
    PathTree tree;
    std::vector<std::uint32_t> node_of;  ///< per row; kNoRow: left out; not with `parts`
    /// With `parts`, per node: the ranges inside it that have no node. Empty: there are none.
    std::vector<std::uint64_t> unplaced;
};

/// Counts and sums the ranges of each node; a suspended call counts once, at its first part. One pass, or a
/// few with `parts`. On devices, annotations have no self time, and the node of a thread has the time of the
/// work.
MergedRanges merge_ranges(const Trace& trace, const NameSlots& slots, const RangeMergeOptions& options = {});

}  // namespace marey
