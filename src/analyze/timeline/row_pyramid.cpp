// row_pyramid.cpp: builds the levels in one pass over the rows, and answers by skipping whole nodes.
#include "analyze/timeline/row_pyramid.h"

#include <algorithm>

namespace marey {

RowPyramid::RowPyramid(const RangeColumns& ranges) : ranges_(ranges) {
    levels_.emplace_back();
    levels_[0].reserve((ranges.size() + kRows - 1) / kRows);
    for (std::size_t row = 0; row < ranges.size(); row += kRows)
        levels_[0].push_back(node_of_rows(row, std::min(row + kRows, ranges.size())));
    while (levels_.back().size() > kFanOut) {
        const std::vector<Node>& below = levels_.back();
        std::vector<Node> level;
        level.reserve((below.size() + kFanOut - 1) / kFanOut);
        for (std::size_t first = 0; first < below.size(); first += kFanOut) {
            Node node = below[first];
            const std::size_t end = std::min(first + kFanOut, below.size());
            for (std::size_t i = first + 1; i < end; ++i) {
                if (below[i].longest_ns > node.longest_ns) {
                    node.longest_ns = below[i].longest_ns;
                    node.longest = below[i].longest;
                }
                if (below[i].greatest_depth > node.greatest_depth) {
                    node.greatest_depth = below[i].greatest_depth;
                    node.deepest = below[i].deepest;
                }
                node.least_depth = std::min(node.least_depth, below[i].least_depth);
            }
            level.push_back(node);
        }
        levels_.push_back(std::move(level));
    }
}

// The extremes first, then the rows that have them: loops that compilers vectorise.
RowPyramid::Node RowPyramid::node_of_rows(std::size_t begin, std::size_t end) const noexcept {
    const std::int64_t* const durations = ranges_.duration_ns.data();
    const std::uint32_t* const depths = ranges_.depth.data();
    Node node;
    node.start_ns = ranges_.start_ns[begin];
    node.longest_ns = durations[begin];
    node.greatest_depth = node.least_depth = depths[begin];
    for (std::size_t row = begin; row < end; ++row) {
        node.longest_ns = std::max(node.longest_ns, durations[row]);
        node.greatest_depth = std::max(node.greatest_depth, depths[row]);
        node.least_depth = std::min(node.least_depth, depths[row]);
    }
    std::size_t row = begin;
    while (durations[row] != node.longest_ns) ++row;
    node.longest = static_cast<Row>(row);
    row = begin;
    while (depths[row] != node.greatest_depth) ++row;
    node.deepest = static_cast<Row>(row);
    return node;
}

std::size_t RowPyramid::first_from(std::size_t begin, std::size_t end, std::int64_t time_ns) const noexcept {
    const std::vector<Node>& nodes = levels_[0];
    // The answer is before the first node, behind `begin`, that starts at the time or later. It is often
    // near.
    std::size_t low = begin / kRows + 1, step = 1;
    const std::size_t nodes_end = (end + kRows - 1) / kRows;
    std::size_t high = low;
    while (high < nodes_end && nodes[high].start_ns < time_ns) {
        low = high + 1;
        high += step;
        step *= 2;
    }
    high = std::min(high, nodes_end);
    const auto node = std::partition_point(nodes.begin() + static_cast<std::ptrdiff_t>(std::min(low, high)),
                                           nodes.begin() + static_cast<std::ptrdiff_t>(high),
                                           [&](const Node& n) { return n.start_ns < time_ns; });
    const auto after = static_cast<std::size_t>(node - nodes.begin());
    const std::int64_t* const starts = ranges_.start_ns.data();
    const std::int64_t* const found = std::partition_point(
        starts + std::max(begin, (after - 1) * kRows), starts + std::min(end, after * kRows),
        [&](std::int64_t start) { return start < time_ns; });
    return static_cast<std::size_t>(found - starts);
}

std::size_t RowPyramid::next_shallow(std::size_t begin, std::size_t end, std::uint32_t depth) const noexcept {
    std::size_t row = begin;
    while (row < end) {
        const std::size_t node = row / kRows;
        if (row % kRows == 0 && levels_[0][node].least_depth > depth) {
            // Skip the largest node that begins here and has nothing so shallow.
            std::size_t level = 0, index = node, rows = kRows;
            while (level + 1 < levels_.size() && index % kFanOut == 0 &&
                   levels_[level + 1][index / kFanOut].least_depth > depth) {
                ++level;
                index /= kFanOut;
                rows *= kFanOut;
            }
            row += rows;
            continue;
        }
        const std::size_t stop = std::min(end, (node + 1) * kRows);
        for (; row < stop; ++row) {
            if (ranges_.depth[row] <= depth) return row;
        }
    }
    return end;
}

std::size_t RowPyramid::last_shallow(std::size_t begin, std::size_t end, std::uint32_t depth) const noexcept {
    std::size_t row = end;  // the rows from here on are deeper
    while (row > begin) {
        const std::size_t node = (row - 1) / kRows;
        if (row % kRows == 0 && levels_[0][node].least_depth > depth) {
            std::size_t level = 0, index = node, rows = kRows;
            while (level + 1 < levels_.size() && index % kFanOut == kFanOut - 1 &&
                   levels_[level + 1][index / kFanOut].least_depth > depth) {
                ++level;
                index /= kFanOut;
                rows *= kFanOut;
            }
            row -= std::min(row, rows);
            continue;
        }
        const std::size_t stop = std::max(begin, node * kRows);
        for (; row > stop; --row) {
            if (ranges_.depth[row - 1] <= depth) return row - 1;
        }
    }
    return end;
}

RowSummary RowPyramid::summary_of(const Node& node) noexcept {
    RowSummary summary;
    summary.longest_ns = node.longest_ns;
    summary.longest = node.longest;
    summary.deepest = node.deepest;
    summary.greatest_depth = node.greatest_depth;
    return summary;
}

RowSummary RowPyramid::summary(std::size_t begin, std::size_t end) const noexcept {
    RowSummary found;
    for (std::size_t row = begin; row < end;) {
        if (row % kRows != 0 || end - row < kRows) {
            const std::size_t stop = std::min(end, (row / kRows + 1) * kRows);
            found.add(summary_of(node_of_rows(row, stop)));
            row = stop;
            continue;
        }
        std::size_t level = 0, index = row / kRows, rows = kRows;
        while (level + 1 < levels_.size() && index % kFanOut == 0 && end - row >= rows * kFanOut) {
            ++level;
            index /= kFanOut;
            rows *= kFanOut;
        }
        found.add(summary_of(levels_[level][index]));
        row += rows;
    }
    return found;
}

std::size_t RowPyramid::bytes() const noexcept {
    std::size_t bytes = 0;
    for (const std::vector<Node>& level : levels_) bytes += level.capacity() * sizeof(Node);
    return bytes;
}

}  // namespace marey
