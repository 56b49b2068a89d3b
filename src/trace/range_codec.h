// range_codec.h: the range table as columns of small numbers: each time is kept as its distance from its
// neighbour in the tree, and what follows from the rest is kept only where it does not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trace/trace_data.h"

namespace marey {

/// The columns, as docs/formats/capture.md describes them. The first four and `self` have a row for each
/// range (for the reader, none at all when all are 0); gaps and heads have so together, and durations and
/// tails.
struct RangeNumbers {
    std::vector<std::uint64_t> depth;
    std::vector<std::uint64_t> parent;  ///< less the parent that depths alone tell
    std::vector<std::uint64_t> site;    ///< 0: as predicted, else 1 + site
    std::vector<std::uint64_t> flags;
    std::vector<std::uint64_t> gaps;       ///< from the end of the sibling before to the start
    std::vector<std::uint64_t> heads;      ///< of first children: from the parent's start to theirs
    std::vector<std::uint64_t> durations;  ///< of those without children, in order of their ends
    std::vector<std::uint64_t> tails;  ///< of the others: from the end of the last child to theirs, likewise
    std::vector<std::uint64_t> self;   ///< less the self time that times and parents alone tell
};

/// Requires that depths never rise by more than one from row to row, and begin with 0.
RangeNumbers split_ranges(const TraceData& data);

/// Fills the `count` rows of the range columns of `data`, whose window is there already. Throws marey::Error
/// on numbers that no table gives; what the columns hold is not checked beyond that, except that parents
/// stand before their children.
void join_ranges(RangeNumbers numbers, std::size_t count, TraceData& data);

}  // namespace marey
