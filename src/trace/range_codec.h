// range_codec.h: the range table as columns of small numbers: each time is stored as its distance from its
// neighbour in the tree, and values that can be derived are stored only where they differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trace/trace_data.h"

namespace marey {

/// The columns, as docs/formats/capture.md describes them. The first four and `self` have a row for each
/// range (for the reader, none at all when all are 0); so have gaps and heads together, and durations and
/// tails together.
struct RangeNumbers {
    std::vector<std::uint64_t> depth;
    std::vector<std::uint64_t> parent;  ///< minus the parent derived from depths alone
    std::vector<std::uint64_t> site;    ///< 0: as predicted, else 1 + site
    std::vector<std::uint64_t> flags;
    std::vector<std::uint64_t> gaps;       ///< from the end of the sibling before to the start
    std::vector<std::uint64_t> heads;      ///< of first children: from the parent's start to theirs
    std::vector<std::uint64_t> durations;  ///< of those without children, in order of their ends
    std::vector<std::uint64_t> tails;  ///< of the others: from the end of the last child to theirs, likewise
    std::vector<std::uint64_t> self;   ///< minus the self time derived from times and parents alone
};

/// The columns of `data`, few at a time: together they need twice the memory of the table. Require that
/// depths never rise by more than one from row to row, and begin with 0.
std::vector<std::uint64_t> split_depths(const TraceData& data);
std::vector<std::uint64_t> split_sites(const TraceData& data);
std::vector<std::uint64_t> split_flags(const TraceData& data);
std::vector<std::uint64_t> split_self(const TraceData& data);
/// `parent`, `gaps`, `heads`, `durations` and `tails`.
RangeNumbers split_times(const TraceData& data);

/// Fills the `count` rows of the range columns of `data`, whose window is already set. Throws marey::Error on
/// numbers that no table gives; otherwise only checks that parents come before their children.
void join_ranges(RangeNumbers numbers, std::size_t count, TraceData& data);

}  // namespace marey
