// merged_ranges.cpp: merges ranges by the names of the enclosing ranges, and maps each range to its node.
#include "analyze/tree/merged_ranges.h"

#include "analyze/gpu/device_time.h"

namespace marey {
namespace {

class Merge {
  public:
    Merge(const Trace& trace, const NameSlots& slots, const RangeMergeOptions& options)
        : trace_(trace), slots_(slots), options_(options), clip_(trace), work_(trace) {
        thread_node_.resize(options.by_thread ? trace.threads().size() : 0, kNoRow);
    }

    MergedRanges run() {
        result_.node_of.resize(trace_.ranges().size(), kNoRow);
        for (const TrackInfo& track : trace_.tracks()) add_track(track);
        return std::move(result_);
    }

  private:
    void add_track(const TrackInfo& track) {
        const RangeColumns ranges = trace_.ranges();
        const Place place = place_of(track);
        PathTree& tree = result_.tree;
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            const std::uint32_t slot = slots_.of_site[ranges.site[row]];
            const Row parent = ranges.parent[row];
            const bool is_nested = parent != kNoRow && result_.node_of[parent] != kNoRow;
            std::uint32_t index;
            if (is_nested) {
                index = tree.child(result_.node_of[parent], slot);
            } else {
                if (options_.inside && !is_selected(row)) continue;
                index = outermost(track, place, slot);
            }
            result_.node_of[row] = index;
            PathTree::Node& node = tree.nodes[index];
            const std::int64_t duration = clip_.duration(ranges.start_ns[row], ranges.duration_ns[row]);
            if ((ranges.flags[row] & kFurtherPart) == 0) ++node.count;
            node.total_ns += duration;
            if (place == Place::Device) {
                add_work(row);
                continue;
            }
            node.self_ns += ranges.self_ns[row];
            if (!is_nested && node.parent != kNoRow && place != Place::Async)
                tree.nodes[node.parent].total_ns += duration;
        }
    }

    /// Adds the self time of a device range if it is work.
    void add_work(Row row) {
        const Row work = work_.at(row);
        if (work == kNoRow || result_.node_of[work] == kNoRow) return;
        const std::int64_t self = trace_.ranges().self_ns[row];
        PathTree::Node& node = result_.tree.nodes[result_.node_of[work]];
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
        if (!options_.separate_roots) return result_.tree.root(base, slot, place);
        PathTree::Node node;
        node.parent = base;
        node.slot = slot;
        node.thread = options_.by_thread ? track.thread : kNoRow;
        node.place = place;
        return result_.tree.add(node);
    }

    std::uint32_t thread_node(const TrackInfo& track, Place place) {
        std::uint32_t& known = thread_node_[track.thread];
        if (known == kNoRow) {
            PathTree::Node node;
            node.is_thread = true;
            node.thread = track.thread;
            node.place = place == Place::Device ? Place::Device : Place::Host;
            known = result_.tree.add(node);
        }
        return known;
    }

    const Trace& trace_;
    const NameSlots& slots_;
    const RangeMergeOptions& options_;
    WindowClip clip_;
    EnclosingWork work_;
    MergedRanges result_;
    std::vector<std::uint32_t> thread_node_;
    std::size_t next_wanted_ = 0;
};

}  // namespace

MergedRanges merge_ranges(const Trace& trace, const NameSlots& slots, const RangeMergeOptions& options) {
    return Merge(trace, slots, options).run();
}

}  // namespace marey
