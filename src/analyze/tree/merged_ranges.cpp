// merged_ranges.cpp: merges ranges by the names of the enclosing ranges, and maps each range to its node.
#include "analyze/tree/merged_ranges.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "analyze/gpu/device_time.h"
#include "base/work_meter.h"
#include "trace/part_flags.h"

namespace marey {
namespace {

/// Marks the number of a node around a range that has none itself.
constexpr std::uint32_t kUnplaced = 1u << 31;

class Merge {
  public:
    Merge(const Trace& trace, const NameSlots& slots, const RangeMergeOptions& options)
        : trace_(trace), slots_(slots), options_(options), clip_(trace), growth_(result_.tree) {
        thread_node_.resize(options.by_thread ? trace.threads().size() : 0, kNoRow);
    }

    MergedRanges run() {
        result_.node_of.resize(trace_.ranges().size(), kNoRow);
        if (options_.crossing != nullptr) make_roots();
        do {
            next_wanted_ = 0;
            work_.emplace(trace_);
            meter_.emplace(trace_.ranges().size());
            result_.unplaced.clear();
            for (const TrackInfo& track : trace_.tracks()) add_track(track);
        } while (options_.parts > 0 && needs_another_pass());
        return std::move(result_);
    }

  private:
    /// In order of time: crossing steps are in later rows than others.
    void make_roots() {
        const RangeColumns ranges = trace_.ranges();
        std::vector<Row> rows = *options_.inside;
        std::ranges::stable_sort(rows, [&](Row a, Row b) { return ranges.start_ns[a] < ranges.start_ns[b]; });
        for (const Row row : rows)
            result_.node_of[row] = outermost(trace_.tracks()[trace_.track_of(row)], Place::Host,
                                             slots_.of_site[ranges.site[row]]);
        for (const auto& [row, more_ns] : options_.crossing->more_self_ns) more_self_[row] += more_ns;
    }

    Row parent_of(Row row) const {
        if (options_.crossing != nullptr) {
            const auto found = options_.crossing->parent.find(row);
            if (found != options_.crossing->parent.end()) return found->second;
        }
        return trace_.ranges().parent[row];
    }

    void add_track(const TrackInfo& track) {
        const RangeColumns ranges = trace_.ranges();
        const bool has_crossing = options_.crossing != nullptr && track.kind == TrackKind::Async;
        const Place place = has_crossing ? Place::Host : place_of(track);
        PathTree& tree = result_.tree;
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            meter_->add_row(row);
            const std::uint32_t slot = slots_.of_site[ranges.site[row]];
            const Row parent = parent_of(row);
            const bool is_nested = parent != kNoRow && result_.node_of[parent] != kNoRow;
            std::uint32_t index;
            if (is_nested) {
                index = inside(result_.node_of[parent], slot);
            } else {
                if (options_.inside && !is_selected(row)) continue;
                // Without make_roots(), the number in node_of is that of an earlier pass.
                index = options_.crossing != nullptr ? result_.node_of[row] : outermost(track, place, slot);
            }
            result_.node_of[row] = index;
            if (place == Place::Device) add_work(row);
            const bool is_first_part = (ranges.flags[row] & kFurtherPart) == 0;
            if (options_.parts > 0 && !is_added(index, is_first_part)) continue;
            PathTree::Node& node = tree.nodes[index];
            const std::int64_t duration = clip_.duration(ranges.start_ns[row], ranges.duration_ns[row]);
            if (is_first_part) node.count += calls_of(trace_, ranges, row);
            node.total_ns += duration;
            if (place == Place::Device) continue;
            node.self_ns += ranges.self_ns[row];
            if (options_.crossing != nullptr) node.self_ns += more_self_[row];
            if (!is_nested && node.parent != kNoRow && place != Place::Async)
                tree.nodes[node.parent].total_ns += duration;
        }
    }

    std::uint32_t inside(std::uint32_t around, std::uint32_t slot) {
        if (options_.parts == 0) return result_.tree.child(around, slot);
        if ((around & kUnplaced) != 0) return around;
        const std::uint32_t node = growth_.child(around, slot);
        return node != kNoRow ? node : around | kUnplaced;
    }

    /// With `parts`: whether this pass adds the values of a range, for which inside() returned `index`.
    bool is_added(std::uint32_t index, bool is_first_part) {
        if ((index & kUnplaced) == 0) return growth_.is_new(index);
        const std::uint32_t around = index & ~kUnplaced;
        if (around >= result_.unplaced.size()) result_.unplaced.resize(result_.tree.nodes.size());
        result_.unplaced[around] += is_first_part;
        return false;
    }

    bool needs_another_pass() {
        const std::vector<PathTree::Node>& nodes = result_.tree.nodes;
        std::vector<std::uint64_t>& unplaced = result_.unplaced;
        unplaced.resize(nodes.size());
        if (!growth_.is_cut()) return false;
        std::vector<std::uint64_t> kept;
        for (auto i = static_cast<std::uint32_t>(nodes.size()); i-- > 0;) {
            if (growth_.is_left_out(i)) {
                unplaced[nodes[i].parent] += unplaced[i] + nodes[i].count;
            } else {
                kept.push_back(unplaced[i]);  // the last node first
            }
        }
        unplaced.assign(kept.rbegin(), kept.rend());
        growth_.remove_left_out();
        std::vector<std::uint64_t> ranges = unplaced;  // of each node and all nodes below it
        std::array<std::int64_t, 3> whole_ns{};        // by place
        std::array<std::uint64_t, 3> whole_ranges{};
        for (std::size_t i = nodes.size(); i-- > 0;) {
            const PathTree::Node& node = nodes[i];
            ranges[i] += node.count;
            if (node.parent != kNoRow) {
                ranges[node.parent] += ranges[i];
                continue;
            }
            whole_ns[static_cast<std::size_t>(node.place)] += node.total_ns;
            whole_ranges[static_cast<std::size_t>(node.place)] += ranges[i];
        }
        return growth_.start_next_pass([&](std::uint32_t i) {
            const auto place = static_cast<std::size_t>(nodes[i].place);
            return nodes[i].total_ns <= whole_ns[place] / options_.parts &&
                   ranges[i] <= whole_ranges[place] / options_.parts;
        });
    }

    /// Adds the self time of a device range if it is work.
    void add_work(Row row) {
        const Row work = work_->at(row);
        if (work == kNoRow || result_.node_of[work] == kNoRow) return;
        const std::uint32_t index = result_.node_of[work];
        if (options_.parts > 0 && ((index & kUnplaced) != 0 || !growth_.is_new(index))) return;
        const std::int64_t self = trace_.ranges().self_ns[row];
        PathTree::Node& node = result_.tree.nodes[index];
        node.self_ns += self;
        if (node.thread != kNoRow) result_.tree.nodes[thread_node_[node.thread]].total_ns += self;
    }

    /// Rows must come in ascending order.
    bool is_selected(Row row) {
        const std::vector<Row>& wanted = *options_.inside;
        while (next_wanted_ < wanted.size() && wanted[next_wanted_] < row) ++next_wanted_;
        return next_wanted_ < wanted.size() && wanted[next_wanted_] == row;
    }

    std::uint32_t outermost(const TrackInfo& track, Place place, std::uint32_t slot) {
        const std::uint32_t base = options_.by_thread ? thread_node(track, place) : kNoRow;
        if (options_.parts > 0) return growth_.root(slot, place);
        if (!options_.separate_roots) return result_.tree.root(base, slot, place);
        return result_.tree.add({.parent = base,
                                 .slot = slot,
                                 .thread = options_.by_thread ? track.thread : kNoRow,
                                 .place = place});
    }

    std::uint32_t thread_node(const TrackInfo& track, Place place) {
        std::uint32_t& known = thread_node_[track.thread];
        if (known == kNoRow) {
            known = result_.tree.add({.thread = track.thread,
                                      .is_thread = true,
                                      .place = place == Place::Device ? Place::Device : Place::Host});
        }
        return known;
    }

    const Trace& trace_;
    const NameSlots& slots_;
    const RangeMergeOptions& options_;
    WindowClip clip_;
    std::optional<EnclosingWork> work_;
    std::optional<WorkMeter> meter_;
    MergedRanges result_;
    PathGrowth growth_;  ///< with `parts`
    std::vector<std::uint32_t> thread_node_;
    std::unordered_map<Row, std::int64_t> more_self_;  ///< with `crossing`
    std::size_t next_wanted_ = 0;
};

}  // namespace

MergedRanges merge_ranges(const Trace& trace, const NameSlots& slots, const RangeMergeOptions& options) {
    return Merge(trace, slots, options).run();
}

}  // namespace marey
