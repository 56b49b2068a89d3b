// call_tree.cpp: merges ranges that have the same names on the path from the root, or inverts that tree.
#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_map>

#include <marey/call_tree.h>
#include <marey/error.h>
#include <marey/samples.h>

#include "analyze/gpu/device_time.h"
#include "analyze/name_slots.h"
#include "analyze/tree/merged_ranges.h"
#include "analyze/tree/path_tree.h"
#include "analyze/tree/step_ranges.h"
#include "trace/part_flags.h"

namespace marey {
namespace {

using Node = PathTree::Node;

/// Finds out whether one of the ranges around a range has the same name. Visit ranges in pre-order.
class Recursion {
  public:
    explicit Recursion(std::size_t names) : open_(names, 0) {}

    /// `parent_of` and `slot_of` take a range; `parent_of` returns kNoRow for the outermost ones.
    bool enter(std::uint32_t range, const auto& parent_of, const auto& slot_of) {
        const std::uint32_t parent = parent_of(range);
        for (; !path_.empty() && path_.back() != parent; path_.pop_back()) --open_[slot_of(path_.back())];
        if (path_.empty()) {  // the parent may be on another track
            for (std::uint32_t around = parent; around != kNoRow; around = parent_of(around)) {
                path_.push_back(around);
                ++open_[slot_of(around)];
            }
            std::ranges::reverse(path_);
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
    void visit(const auto& visit) const {
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
    void visit(const auto& visit) const {
        const WindowClip clip(trace_);
        EnclosingWork work(trace_);
        for (const TrackInfo& track : trace_.tracks()) {
            const Place place = place_of(track);
            for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
                Amounts amounts;
                if ((ranges_.flags[row] & kFurtherPart) == 0) amounts.count = calls_of(trace_, ranges_, row);
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
PathTree inverted_in_parts(const auto& source, std::uint32_t wanted, const CallTreeOptions& options) {
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

/// The tree of a bottom-up call_tree(). `merged` is the tree from the roots down, and `order` its nodes in
/// pre-order.
PathTree caller_paths(const Trace& trace, const NameSlots& slots, const MergedRanges& merged,
                      const std::vector<std::uint32_t>& order, const CallTreeOptions& options) {
    std::uint32_t wanted = kNoRow;
    if (!options.callers_of.empty()) {
        const auto name = std::ranges::find(slots.names, options.callers_of);
        if (name == slots.names.end()) return {};
        wanted = static_cast<std::uint32_t>(name - slots.names.begin());
    }
    const auto is_zero = [](std::uint64_t ranges) { return ranges == 0; };
    if (!std::ranges::all_of(merged.unplaced, is_zero))
        return inverted_in_parts(RangeSource(trace, slots), wanted, options);
    const TreeSource source(merged.tree.nodes, order, slots.names.size());
    if (options.parts > 0) return inverted_in_parts(source, wanted, options);
    return inverted(source, merged.tree.nodes, wanted, options.caller_levels);
}

using Node = PathTree::Node;

enum class Order { Total, Self, Time };  // Time: roots in order of creation, everything else by total

/// The nodes in pre-order.
std::vector<std::uint32_t> in_order(const std::vector<Node>& nodes, Order by) {
    std::vector<std::uint32_t> first(nodes.size() + 1, 0);  // children of node i: [first[i], first[i + 1])
    std::vector<std::uint32_t> roots;
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
        if (nodes[i].parent == kNoRow) {
            roots.push_back(i);
        } else {
            ++first[nodes[i].parent + 1];
        }
    }
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<std::uint32_t> children(nodes.size() - roots.size());
    std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
        if (nodes[i].parent != kNoRow) children[next[nodes[i].parent]++] = i;
    }
    // Push the last child first, because a stack reverses the order.
    const auto is_later = [&](std::uint32_t a, std::uint32_t b) {
        const Node &left = nodes[a], &right = nodes[b];
        if (left.place != right.place) return left.place > right.place;
        const bool by_self = by == Order::Self && left.place != Place::Async && !left.is_thread;
        const std::int64_t l = by_self ? left.self_ns : left.total_ns;
        const std::int64_t r = by_self ? right.self_ns : right.total_ns;
        return l != r ? l < r : a > b;
    };
    std::vector<std::uint32_t> result;
    result.reserve(nodes.size());
    std::vector<std::uint32_t> stack = std::move(roots);
    if (by == Order::Time) {
        std::ranges::reverse(stack);
    } else {
        std::ranges::sort(stack, is_later);
    }
    while (!stack.empty()) {
        const std::uint32_t node = stack.back();
        stack.pop_back();
        result.push_back(node);
        const auto begin = children.begin() + first[node], end = children.begin() + first[node + 1];
        if (by != Order::Time || !nodes[node].is_thread) std::sort(begin, end, is_later);
        if (by == Order::Time && nodes[node].is_thread) std::reverse(begin, end);
        stack.insert(stack.end(), begin, end);
    }
    return result;
}

/// `steps`: receives the root steps if the options request steps.
RangeMergeOptions merge_options(const Trace& trace, const NameSlots& slots, const CallTreeOptions& options,
                                std::vector<StepRange>& steps) {
    const int given = !options.inside.empty() + (options.inside_range != kNoRow) + options.step.has_value() +
                      options.by_step;
    if (given > 1) throw Error("--inside, --row, --step and --by-step are mutually exclusive");
    if (options.by_step && options.bottom_up) throw Error("--by-step cannot be combined with --bottom-up");
    if (options.parts > 0 && (options.by_thread || options.by_step || (options.bottom_up && given > 0)))
        throw Error("call_tree: 'parts' cannot be combined with these options");
    RangeMergeOptions result{
        .by_thread = options.by_thread, .separate_roots = options.by_step, .parts = options.parts};
    if (given == 0) return result;
    std::vector<Row>& rows = result.inside.emplace();
    if (options.inside_range != kNoRow) {
        if (options.inside_range >= trace.ranges().size())
            throw Error("there is no range " + std::to_string(options.inside_range) + ": the trace has " +
                        std::to_string(trace.ranges().size()) + " ranges");
        rows.push_back(options.inside_range);
    } else if (!options.inside.empty()) {
        const auto name = std::ranges::find(slots.names, options.inside);
        const auto slot = static_cast<std::uint32_t>(name - slots.names.begin());
        const RangeColumns ranges = trace.ranges();
        for (Row row = 0; row < ranges.size(); ++row) {
            if (slots.of_site[ranges.site[row]] == slot) rows.push_back(row);
        }
    } else {
        steps = find_steps(trace, options.step_name);
        if (options.step)
            std::erase_if(steps, [&](const StepRange& step) { return step.number != *options.step; });
        for (const StepRange& step : steps) rows.push_back(step.row);
    }
    return result;
}

CallTreeNode public_node(const Trace& trace, const NameSlots& slots, const Node& node) {
    CallTreeNode out{.name = std::string(node.is_thread ? trace.string(trace.threads()[node.thread].name)
                                                        : slots.names[node.slot]),
                     .thread = node.thread,
                     .is_thread = node.is_thread,
                     .is_async = node.place == Place::Async,
                     .is_device = node.place == Place::Device};
    // As in averages: a name with only continued calls still counts as one.
    out.count = node.is_thread ? node.count : std::max<std::uint64_t>(node.count, 1);
    out.total_ns = node.total_ns;
    out.self_ns = node.self_ns;
    return out;
}

}  // namespace

CallTree call_tree(const Trace& recorded, const CallTreeOptions& given) {
    const Trace trace = with_sampled_functions(recorded);
    CallTreeOptions options = given;
    if (options.merge_steps) {
        options.inside = group_name(given.inside);
        options.callers_of = group_name(given.callers_of);
    }
    const NameSlots slots(trace, options.merge_steps);
    std::vector<StepRange> steps;
    RangeMergeOptions merging = merge_options(trace, slots, options, steps);
    std::optional<CrossingSteps> crossing;
    if (!steps.empty()) crossing.emplace(trace);
    if (crossing && !crossing->steps.empty()) merging.crossing = &*crossing;
    MergedRanges merged = merge_ranges(trace, slots, merging);
    PathTree& paths = merged.tree;
    std::unordered_map<std::uint32_t, std::int64_t> step_of;  // by root node
    for (const StepRange& step : steps) step_of.emplace(merged.node_of[step.row], step.number);
    CallTree tree{.by_thread = options.by_thread, .bottom_up = options.bottom_up};
    for (const Node& node : paths.nodes) {
        if (node.place == Place::Host && node.parent == kNoRow) tree.recorded_ns += node.total_ns;
        if (node.place == Place::Device) tree.device_ns += node.self_ns;
    }
    if (options.bottom_up)
        paths = caller_paths(trace, slots, merged, in_order(paths.nodes, Order::Total), options);
    const Order by = options.bottom_up ? Order::Self : options.by_step ? Order::Time : Order::Total;
    std::vector<std::uint32_t> place(paths.nodes.size());  // of each node in the result
    tree.nodes.reserve(paths.nodes.size());
    for (const std::uint32_t index : in_order(paths.nodes, by)) {
        const Node& node = paths.nodes[index];
        place[index] = static_cast<std::uint32_t>(tree.nodes.size());
        CallTreeNode& out = tree.nodes.emplace_back(public_node(trace, slots, node));
        if (!options.bottom_up && !merged.unplaced.empty()) out.left_out = merged.unplaced[index];
        const bool is_root = node.parent == kNoRow || paths.nodes[node.parent].is_thread;
        if (const auto step = step_of.find(index); is_root && !options.bottom_up && step != step_of.end())
            out.step = step->second;
        if (node.parent != kNoRow) {
            out.parent = place[node.parent];
            out.depth = tree.nodes[out.parent].depth + 1;
        }
        const std::int64_t whole = out.is_device ? tree.device_ns : tree.recorded_ns;
        const std::int64_t part = options.bottom_up && !node.is_thread ? node.self_ns : node.total_ns;
        if (whole > 0) out.share = static_cast<double>(part) / static_cast<double>(whole);
        // The estimates below a range may be more than the range.
        if (recorded.samples().size() != 0) out.self_ns = std::max<std::int64_t>(out.self_ns, 0);
    }
    return tree;
}

}  // namespace marey
