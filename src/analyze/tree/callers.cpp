// callers.cpp: inverts a call tree: every path starts at a name and leads to its outermost caller.
#include "analyze/tree/callers.h"

#include <algorithm>
#include <array>

#include "analyze/gpu/device_time.h"
#include "analyze/tree/path_growth.h"

namespace marey {
namespace {

using Node = PathTree::Node;

/// Finds out whether one of the ranges around a range has the same name. Visit ranges in pre-order.
class Recursion {
  public:
    explicit Recursion(std::size_t names) : open_(names, 0) {}

    /// `parent_of` and `slot_of` take a range; `parent_of` returns kNoRow for the outermost ones.
    template <class ParentOf, class SlotOf>
    bool enter(std::uint32_t range, const ParentOf& parent_of, const SlotOf& slot_of) {
        const std::uint32_t parent = parent_of(range);
        for (; !path_.empty() && path_.back() != parent; path_.pop_back()) --open_[slot_of(path_.back())];
        if (path_.empty()) {  // the parent may be on another track
            for (std::uint32_t around = parent; around != kNoRow; around = parent_of(around)) {
                path_.push_back(around);
                ++open_[slot_of(around)];
            }
            std::reverse(path_.begin(), path_.end());
        }
        path_.push_back(range);
        return open_[slot_of(range)]++ > 0;
    }

  private:
    std::vector<std::uint32_t> open_;  ///< per name
    std::vector<std::uint32_t> path_;
};

/// The amounts that a node, or a range, adds to the paths from its name.
struct Amounts {
    std::uint64_t count = 0;
    std::int64_t total_ns = 0;  ///< 0 for recursive calls
    std::int64_t self_ns = 0;

    void add_to(Node& node) const noexcept {
        node.count += count;
        node.total_ns += total_ns;
        node.self_ns += self_ns;
    }
};

/// The nodes of a complete tree.
class TreeSource {
  public:
    TreeSource(const std::vector<Node>& nodes, const std::vector<std::uint32_t>& order, std::size_t names)
        : nodes_(nodes), is_recursive_(nodes.size(), false) {
        Recursion recursion(names);
        for (const std::uint32_t index : order) {
            if (nodes[index].is_thread) continue;
            is_recursive_[index] = recursion.enter(
                index, [&](std::uint32_t i) { return parent(i); },
                [&](std::uint32_t i) { return nodes_[i].slot; });
        }
    }

    std::uint32_t slot(std::uint32_t index) const noexcept { return nodes_[index].slot; }
    /// kNoRow, also below the node of a thread.
    std::uint32_t parent(std::uint32_t index) const noexcept {
        const std::uint32_t above = nodes_[index].parent;
        return above != kNoRow && nodes_[above].is_thread ? kNoRow : above;
    }
    template <class Visit>
    void visit(const Visit& visit) const {
        for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
            const Node& node = nodes_[i];
            if (node.is_thread) continue;
            visit(i, node.place, Amounts{node.count, is_recursive_[i] ? 0 : node.total_ns, node.self_ns});
        }
    }

  private:
    const std::vector<Node>& nodes_;
    std::vector<bool> is_recursive_;
};

/// All ranges of a trace, for trees with too many paths.
class RangeSource {
  public:
    RangeSource(const Trace& trace, const NameSlots& slots)
        : trace_(trace), slots_(slots), ranges_(trace.ranges()), is_recursive_(ranges_.size(), false) {
        Recursion recursion(slots.names.size());
        for (Row row = 0; row < ranges_.size(); ++row)
            is_recursive_[row] = recursion.enter(
                row, [&](Row i) { return parent(i); }, [&](Row i) { return slot(i); });
    }

    std::uint32_t slot(Row row) const noexcept { return slots_.of_site[ranges_.site[row]]; }
    Row parent(Row row) const noexcept { return ranges_.parent[row]; }
    template <class Visit>
    void visit(const Visit& visit) const {
        const WindowClip clip(trace_);
        EnclosingWork work(trace_);
        for (const TrackInfo& track : trace_.tracks()) {
            const Place place = place_of(track);
            for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
                Amounts amounts;
                amounts.count = (ranges_.flags[row] & kFurtherPart) == 0;
                if (!is_recursive_[row])
                    amounts.total_ns = clip.duration(ranges_.start_ns[row], ranges_.duration_ns[row]);
                if (place != Place::Device) amounts.self_ns = ranges_.self_ns[row];
                visit(row, place, amounts);
                if (place != Place::Device) continue;
                if (const Row worker = work.at(row); worker != kNoRow)
                    visit(worker, place, Amounts{0, 0, ranges_.self_ns[row]});
            }
        }
    }

  private:
    const Trace& trace_;
    const NameSlots& slots_;
    const RangeColumns ranges_;
    std::vector<bool> is_recursive_;
};

bool needs_another_pass(PathGrowth& growth, const std::vector<Node>& nodes, std::uint32_t parts) {
    if (!growth.is_cut()) return false;
    growth.remove_left_out();
    std::array<Amounts, 3> whole{};  // by place
    for (const Node& node : nodes) {
        if (node.parent != kNoRow) continue;
        whole[static_cast<std::size_t>(node.place)].total_ns += node.total_ns;
        whole[static_cast<std::size_t>(node.place)].self_ns += node.self_ns;
    }
    return growth.start_next_pass([&](std::uint32_t i) {
        const Amounts& all = whole[static_cast<std::size_t>(nodes[i].place)];
        return nodes[i].total_ns <= all.total_ns / parts && nodes[i].self_ns <= all.self_ns / parts;
    });
}

/// Without the paths below narrow nodes; see CallTreeOptions::parts.
template <class Source>
PathTree inverted_in_parts(const Source& source, std::uint32_t wanted, const CallTreeOptions& options) {
    PathTree result;
    PathGrowth growth(result);
    do {
        source.visit([&](std::uint32_t index, Place place, const Amounts& amounts) {
            if (wanted != kNoRow && source.slot(index) != wanted) return;
            std::uint32_t node = growth.root(source.slot(index), place);
            std::uint32_t caller = source.parent(index);
            for (std::uint32_t level = 0; node != kNoRow; ++level, caller = source.parent(caller)) {
                if (growth.is_new(node)) amounts.add_to(result.nodes[node]);
                if (level >= options.caller_levels || caller == kNoRow) break;
                node = growth.child(node, source.slot(caller));
            }
        });
    } while (needs_another_pass(growth, result.nodes, options.parts));
    return result;
}

/// All paths, below their threads if the tree has any.
PathTree inverted(const TreeSource& source, const std::vector<Node>& nodes, std::uint32_t wanted,
                  std::uint32_t caller_levels) {
    PathTree result;
    std::vector<std::uint32_t> base(nodes.size(), kNoRow);  // the thread's node in the result
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
        if (nodes[i].is_thread) base[i] = result.add(nodes[i]);
    }
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
        if (!nodes[i].is_thread && nodes[i].parent != kNoRow) base[i] = base[nodes[i].parent];
    }
    source.visit([&](std::uint32_t index, Place place, const Amounts& amounts) {
        if (wanted != kNoRow && source.slot(index) != wanted) return;
        std::uint32_t node = result.root(base[index], source.slot(index), place);
        std::uint32_t caller = source.parent(index);
        for (std::uint32_t level = 0;; ++level, caller = source.parent(caller)) {
            amounts.add_to(result.nodes[node]);
            if (level >= caller_levels || caller == kNoRow) break;
            node = result.child(node, source.slot(caller));
        }
    });
    return result;
}

}  // namespace

PathTree caller_paths(const Trace& trace, const NameSlots& slots, const MergedRanges& merged,
                      const std::vector<std::uint32_t>& order, const CallTreeOptions& options) {
    std::uint32_t wanted = kNoRow;
    if (!options.callers_of.empty()) {
        const auto name = std::find(slots.names.begin(), slots.names.end(), options.callers_of);
        if (name == slots.names.end()) return {};
        wanted = static_cast<std::uint32_t>(name - slots.names.begin());
    }
    const auto is_zero = [](std::uint64_t ranges) { return ranges == 0; };
    if (!std::all_of(merged.unplaced.begin(), merged.unplaced.end(), is_zero))
        return inverted_in_parts(RangeSource(trace, slots), wanted, options);
    const TreeSource source(merged.tree.nodes, order, slots.names.size());
    if (options.parts > 0) return inverted_in_parts(source, wanted, options);
    return inverted(source, merged.tree.nodes, wanted, options.caller_levels);
}

}  // namespace marey
