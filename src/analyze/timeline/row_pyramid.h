// row_pyramid.h: finds the longest, the deepest and the next shallow range in a span of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <marey/trace.h>

namespace marey {

/// The extremes of a span of rows.
struct RowSummary {
    std::int64_t longest_ns = -1;
    Row longest = kNoRow;  ///< the first of the longest: in pre-order, one of the shallowest
    Row deepest = kNoRow;  ///< the first of the deepest
    std::uint32_t greatest_depth = 0;

    void add(const RowSummary& later) noexcept {
        if (later.longest_ns > longest_ns) {
            longest_ns = later.longest_ns;
            longest = later.longest;
        }
        if (deepest == kNoRow || later.greatest_depth > greatest_depth) {
            greatest_depth = later.greatest_depth;
            deepest = later.deepest;
        }
    }
};

/// Summaries of 64 rows, of 16 such blocks, and so on.
class RowPyramid {
  public:
    explicit RowPyramid(const RangeColumns& ranges);

    /// The first row in [begin, end) that starts at `time_ns` or later; `end` if none does. The rows must be
    /// in order of their starts: those of one track.
    std::size_t first_from(std::size_t begin, std::size_t end, std::int64_t time_ns) const noexcept;
    /// The first row in [begin, end) whose depth is at most `depth`; `end` if there is none.
    std::size_t next_shallow(std::size_t begin, std::size_t end, std::uint32_t depth) const noexcept;
    /// The last row in [begin, end) whose depth is at most `depth`; `end` if there is none.
    std::size_t last_shallow(std::size_t begin, std::size_t end, std::uint32_t depth) const noexcept;
    /// Of rows [begin, end), at least one.
    RowSummary summary(std::size_t begin, std::size_t end) const noexcept;

    std::size_t bytes() const noexcept;

  private:
    struct Node {
        std::int64_t start_ns = 0;  ///< of the first row
        std::int64_t longest_ns = 0;
        Row longest = 0;
        Row deepest = 0;
        std::uint32_t greatest_depth = 0;
        std::uint32_t least_depth = 0;
    };
    static constexpr std::size_t kRows = 64;    ///< of a node on the lowest level
    static constexpr std::size_t kFanOut = 16;  ///< nodes in a node of the next level

    Node node_of_rows(std::size_t begin, std::size_t end) const noexcept;
    static RowSummary summary_of(const Node& node) noexcept;

    RangeColumns ranges_;
    std::vector<std::vector<Node>> levels_;  ///< the lowest first; the last has at most kFanOut nodes
};

}  // namespace marey
