// callers.h: inverts a call tree: every path starts at a name and leads to its outermost caller.
#pragma once

#include <cstdint>
#include <vector>

#include <marey/call_tree.h>

#include "analyze/name_slots.h"
#include "analyze/tree/merged_ranges.h"

namespace marey {

/// The tree of a bottom-up call_tree(). `merged` is the tree from the roots down, and `order` its nodes in
/// pre-order.
PathTree caller_paths(const Trace& trace, const NameSlots& slots, const MergedRanges& merged,
                      const std::vector<std::uint32_t>& order, const CallTreeOptions& options);

}  // namespace marey
