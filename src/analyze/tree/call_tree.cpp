// call_tree.cpp: merges ranges that have the same names on the path from the root.
#include <marey/call_tree.h>

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include <marey/error.h>

#include "analyze/tree/callers.h"
#include "analyze/tree/merged_ranges.h"
#include "analyze/tree/step_ranges.h"

namespace marey {
namespace {

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
        std::reverse(stack.begin(), stack.end());
    } else {
        std::sort(stack.begin(), stack.end(), is_later);
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
    RangeMergeOptions result;
    result.by_thread = options.by_thread;
    result.parts = options.parts;
    result.separate_roots = options.by_step;
    if (given == 0) return result;
    std::vector<Row>& rows = result.inside.emplace();
    if (options.inside_range != kNoRow) {
        if (options.inside_range >= trace.ranges().size())
            throw Error("there is no range " + std::to_string(options.inside_range) + ": the trace has " +
                        std::to_string(trace.ranges().size()) + " ranges");
        rows.push_back(options.inside_range);
    } else if (!options.inside.empty()) {
        const auto name = std::find(slots.names.begin(), slots.names.end(), options.inside);
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
    CallTreeNode out;
    out.name = node.is_thread ? trace.string(trace.threads()[node.thread].name) : slots.names[node.slot];
    out.thread = node.thread;
    out.is_thread = node.is_thread;
    out.is_async = node.place == Place::Async;
    out.is_device = node.place == Place::Device;
    // As in averages: a name with only continued calls still counts as one.
    out.count = node.is_thread ? node.count : std::max<std::uint64_t>(node.count, 1);
    out.total_ns = node.total_ns;
    out.self_ns = node.self_ns;
    return out;
}

}  // namespace

CallTree call_tree(const Trace& trace, const CallTreeOptions& given) {
    CallTreeOptions options = given;
    if (options.merge_steps) {
        options.inside = group_name(given.inside);
        options.callers_of = group_name(given.callers_of);
    }
    const NameSlots slots(trace, options.merge_steps);
    std::vector<StepRange> steps;
    MergedRanges merged = merge_ranges(trace, slots, merge_options(trace, slots, options, steps));
    PathTree& paths = merged.tree;
    std::unordered_map<std::uint32_t, std::int64_t> step_of;  // by root node
    for (const StepRange& step : steps) step_of.emplace(merged.node_of[step.row], step.number);
    CallTree tree;
    tree.by_thread = options.by_thread;
    tree.bottom_up = options.bottom_up;
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
    }
    return tree;
}

}  // namespace marey
