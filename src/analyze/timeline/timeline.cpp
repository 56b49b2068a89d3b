// timeline.cpp: descends from the roots of a track; ranges narrower than a pixel are merged with their
// siblings.
#include <algorithm>
#include <cstddef>
#include <utility>

#include <marey/timeline.h>

namespace marey {
namespace {

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
    Node node{.start_ns = ranges_.start_ns[begin], .longest_ns = durations[begin]};
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
    return RowSummary{.longest_ns = node.longest_ns,
                      .longest = node.longest,
                      .deepest = node.deepest,
                      .greatest_depth = node.greatest_depth};
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

}  // namespace

struct Timeline::Index {
    explicit Index(const RangeColumns& ranges) : rows(ranges) {}
    RowPyramid rows;
};

namespace {

/// Converts times to pixels. Whole pixels are exact, so that merging does not depend on rounding.
class PixelScale {
  public:
    explicit PixelScale(const TimelineView& view) noexcept
        : begin_(view.begin_ns),
          width_(static_cast<std::uint64_t>(view.end_ns) - static_cast<std::uint64_t>(view.begin_ns)),
          pixels_(view.pixels),
          pixels_per_ns_(static_cast<double>(view.pixels) / static_cast<double>(width_)) {}

    float pixel(std::int64_t time_ns) const noexcept {
        if (time_ns <= begin_) return 0;
        const double pixels = static_cast<double>(since_begin(time_ns)) * pixels_per_ns_;
        return static_cast<float>(std::min(pixels, static_cast<double>(pixels_)));
    }
    /// The whole pixel of a time in the view.
    std::uint32_t column(std::int64_t time_ns) const noexcept {
        return static_cast<std::uint32_t>(Wide{since_begin(time_ns)} * pixels_ / width_);
    }
    /// The first time in this pixel or a later one.
    std::int64_t time(std::uint32_t column) const noexcept {
        const auto since = static_cast<std::uint64_t>((Wide{column} * width_ + pixels_ - 1) / pixels_);
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(begin_) + since);
    }
    bool is_narrow(std::int64_t duration_ns) const noexcept {
        return Wide{static_cast<std::uint64_t>(duration_ns)} * pixels_ < width_;
    }

  private:
    __extension__ using Wide = unsigned __int128;
    std::uint64_t since_begin(std::int64_t time_ns) const noexcept {
        return static_cast<std::uint64_t>(time_ns) - static_cast<std::uint64_t>(begin_);
    }
    std::int64_t begin_;
    std::uint64_t width_;
    std::uint32_t pixels_;
    double pixels_per_ns_;
};

class Painter {
  public:
    Painter(const RangeColumns& ranges, const RowPyramid& rows, const TimelineView& view) noexcept
        : ranges_(ranges), rows_(rows), view_(view), scale_(view) {}

    std::vector<TimelineBox> paint(std::size_t begin, std::size_t end) {
        open_.emplace_back(first_visible(begin, end, 0), end);
        while (!open_.empty()) {
            Siblings& siblings = open_.back();
            if (has_rest(siblings)) paint_rest(siblings);
            if (siblings.next >= siblings.end || ranges_.start_ns[siblings.next] >= view_.end_ns) {
                open_.pop_back();
            } else if (begins_in_view(siblings.next) &&
                       scale_.is_narrow(ranges_.duration_ns[siblings.next])) {
                merge(siblings);
            } else {
                paint_alone(siblings);
            }
        }
        return std::move(boxes_);
    }

  private:
    /// Ranges of one parent: the next to paint, and the end of the parent's rows. Their depth is their place
    /// in `open_`. Rows from `unpainted` on, inside the sibling before the next, are not painted yet.
    struct Siblings {
        Siblings(std::size_t first, std::size_t the_end) : next(first), end(the_end), unpainted(first) {}
        std::size_t next, end, unpainted;
    };

    std::uint32_t depth() const noexcept { return static_cast<std::uint32_t>(open_.size() - 1); }
    std::int64_t end_of(std::size_t row) const noexcept {
        return ranges_.start_ns[row] + ranges_.duration_ns[row];
    }
    bool begins_in_view(std::size_t row) const noexcept { return ranges_.start_ns[row] >= view_.begin_ns; }

    /// The first sibling at this depth that is not over when the view begins.
    std::size_t first_visible(std::size_t begin, std::size_t end, std::uint32_t depth) const noexcept {
        const std::size_t later = rows_.first_from(begin, end, view_.begin_ns);
        const std::size_t last = rows_.last_shallow(begin, later, depth);
        if (last == later) return later;  // none began before the view
        return end_of(last) <= view_.begin_ns ? rows_.next_shallow(later, end, depth) : last;
    }

    void paint_alone(Siblings& siblings) {
        const std::size_t row = siblings.next;
        const std::uint32_t level = depth();
        const std::size_t end = rows_.next_shallow(row + 1, siblings.end, level);
        siblings.next = siblings.unpainted = end;
        add(row, level, 1, scale_.pixel(ranges_.start_ns[row]), scale_.pixel(end_of(row)));
        if (level + 1 < view_.levels && end > row + 1)
            open_.emplace_back(first_visible(row + 1, end, level + 1), end);  // invalidates `siblings`
    }

    /// Paints the ranges that begin in the pixel of the next sibling, up to the first wide one, as one
    /// column.
    void merge(Siblings& siblings) {
        const std::size_t first = siblings.next;
        const std::uint32_t top = depth();
        const std::uint32_t column = scale_.column(ranges_.start_ns[first]);
        std::size_t end = rows_.first_from(first + 1, siblings.end, scale_.time(column + 1));
        RowSummary span = rows_.summary(first, end);
        if (!scale_.is_narrow(span.longest_ns)) {  // in pre-order the longest of all is a sibling
            end = span.longest;
            span = rows_.summary(first, end);
        }
        const std::size_t last = rows_.last_shallow(first, end, top);
        const auto left = static_cast<float>(column);
        add(span.longest, top, last == first ? 1 : end - first, left,
            std::max(left + 1, scale_.pixel(end_of(last))));
        const std::size_t begin = siblings.unpainted;
        if (begin < first) span.add(rows_.summary(begin, first));
        paint_column(span, top + 1, column, end - begin);
        // Ranges in the last sibling may begin in the next pixel, where it ends.
        siblings.next = rows_.next_shallow(end, siblings.end, top);
        siblings.unpainted = end;
    }

    /// Whether ranges were left over from the pixel before the next sibling's.
    bool has_rest(const Siblings& siblings) const noexcept {
        if (siblings.unpainted == siblings.next) return false;
        if (siblings.next >= siblings.end || !scale_.is_narrow(ranges_.duration_ns[siblings.next]))
            return true;
        const std::int64_t next_start = ranges_.start_ns[siblings.next];
        return next_start >= view_.end_ns ||
               scale_.column(ranges_.start_ns[siblings.unpainted]) != scale_.column(next_start);
    }

    void paint_rest(Siblings& siblings) {
        const std::int64_t start = ranges_.start_ns[siblings.unpainted];
        if (start < view_.end_ns)
            paint_column(rows_.summary(siblings.unpainted, siblings.next), depth() + 1, scale_.column(start),
                         siblings.next - siblings.unpainted);
        siblings.unpainted = siblings.next;
    }

    /// Paints one pixel on all levels from `top` to the deepest range of the span: the ranges around it.
    void paint_column(const RowSummary& span, std::uint32_t top, std::uint32_t column, std::size_t merged) {
        const std::uint32_t bottom = std::min(span.greatest_depth, view_.levels - 1);
        const auto left = static_cast<float>(column);
        std::size_t row = span.deepest;
        if (span.greatest_depth > bottom) row = rows_.last_shallow(0, row + 1, bottom);
        for (std::uint32_t level = bottom; level >= top; --level) {
            add(row, level, merged, left, left + 1);
            row = ranges_.parent[row];
        }
    }

    void add(std::size_t row, std::uint32_t level, std::size_t merged, float begin, float end) {
        boxes_.push_back({static_cast<Row>(row), level, static_cast<std::uint32_t>(merged), begin, end});
    }

    const RangeColumns& ranges_;
    const RowPyramid& rows_;
    const TimelineView& view_;
    PixelScale scale_;
    std::vector<Siblings> open_;
    std::vector<TimelineBox> boxes_;
};

}  // namespace

Timeline::Timeline(Trace trace)
    : trace_(std::move(trace)), index_(std::make_shared<const Index>(trace_.ranges())) {}

std::vector<TimelineBox> Timeline::picture(Row track, const TimelineView& view) const {
    if (track >= trace_.tracks().size() || view.end_ns <= view.begin_ns || view.pixels == 0 ||
        view.levels == 0)
        return {};
    const TrackInfo& info = trace_.tracks()[track];
    if (info.range_count == 0) return {};  // all of its ranges may have been filtered out
    return Painter(trace_.ranges(), index_->rows, view)
        .paint(info.first_range, info.first_range + info.range_count);
}

TimelineExtent Timeline::extent(Row track) const noexcept {
    if (track >= trace_.tracks().size() || trace_.tracks()[track].range_count == 0) return {};
    const RangeColumns ranges = trace_.ranges();
    const std::size_t begin = trace_.tracks()[track].first_range;
    const std::size_t end = begin + trace_.tracks()[track].range_count;
    const std::size_t last = index_->rows.last_shallow(begin, end, 0);  // roots do not overlap
    return {index_->rows.summary(begin, end).greatest_depth + 1, ranges.start_ns[begin],
            ranges.start_ns[last] + ranges.duration_ns[last]};
}

std::size_t Timeline::index_bytes() const noexcept {
    return index_->rows.bytes();
}

}  // namespace marey
