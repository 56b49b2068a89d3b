// call_tree.cpp: ranges with the same names from the root down, merged into one tree.
#include <algorithm>

#include <kymo/analyze.h>

#include "analyze/name_slots.h"

namespace kymo {
namespace {

/// Turns a parent's number into another that no node has.
constexpr std::uint32_t kAsyncRoot = std::uint32_t{1} << 31;

struct Node {
    std::uint32_t parent = kNoRow;
    std::uint32_t slot = 0;  ///< of the name; of the thread for a thread's node
    bool is_thread = false;
    bool is_async = false;
    Row thread = kNoRow;
    std::uint64_t count = 0;
    std::int64_t total_ns = 0;
    std::int64_t self_ns = 0;
};

/// Finds the child of a node by name. Open addressing, grown at half full; nothing is ever removed.
class ChildIndex {
  public:
    ChildIndex() : entries_(1024) {}

    /// The place of (parent, slot)'s node; kNoRow in it when there is none yet, and then the caller fills it.
    std::uint32_t& find(std::uint32_t parent, std::uint32_t slot) {
        if (used_ * 2 >= entries_.size()) grow();
        Entry& entry = locate(entries_, key_of(parent, slot));
        if (entry.node == kNoRow) {
            entry.key = key_of(parent, slot);
            ++used_;
        }
        return entry.node;
    }

  private:
    struct Entry {
        std::uint64_t key = 0;
        std::uint32_t node = kNoRow;
    };
    static std::uint64_t key_of(std::uint32_t parent, std::uint32_t slot) {
        return std::uint64_t{parent} << 32 | slot;
    }
    static Entry& locate(std::vector<Entry>& entries, std::uint64_t key) {
        const std::uint64_t hash = (key ^ key >> 29) * 0x9E3779B97F4A7C15u;
        std::size_t i = (hash >> 20) & (entries.size() - 1);
        while (entries[i].node != kNoRow && entries[i].key != key) i = (i + 1) & (entries.size() - 1);
        return entries[i];
    }
    void grow() {
        std::vector<Entry> larger(entries_.size() * 2);
        for (const Entry& entry : entries_) {
            if (entry.node != kNoRow) locate(larger, entry.key) = entry;
        }
        entries_.swap(larger);
    }

    std::vector<Entry> entries_;
    std::size_t used_ = 0;
};

/// Merges the ranges of every track. Parents come before their children in the result.
std::vector<Node> merge(const Trace& trace, const NameSlots& slots, bool by_thread) {
    const RangeColumns ranges = trace.ranges();
    const WindowClip clip(trace);
    std::vector<Node> nodes;
    std::vector<std::uint32_t> thread_node(by_thread ? trace.threads().size() : 0, kNoRow);
    ChildIndex children;
    std::vector<std::uint32_t> path;  // nodes of the ranges around the current one, the outermost first
    for (const TrackInfo& track : trace.tracks()) {
        std::uint32_t base = kNoRow;
        if (by_thread && track.range_count > 0) {
            std::uint32_t& known = thread_node[track.thread];
            if (known == kNoRow) {
                known = static_cast<std::uint32_t>(nodes.size());
                Node& node = nodes.emplace_back();
                node.is_thread = true;
                node.thread = track.thread;
            }
            base = known;
        }
        const bool is_async = track.kind == TrackKind::Async;
        path.clear();
        for (Row row = track.first_range; row < track.first_range + track.range_count; ++row) {
            const std::uint32_t depth = ranges.depth[row];
            const std::uint32_t slot = slots.of_site[ranges.site[row]];
            path.resize(depth + 1, base);
            const std::uint32_t parent = depth == 0 ? base : path[depth - 1];
            // Async roots do not merge with others of their name: they hold another kind of time.
            const std::uint32_t key = is_async && depth == 0 ? parent ^ kAsyncRoot : parent;
            std::uint32_t& index = children.find(key, slot);
            if (index == kNoRow) {
                index = static_cast<std::uint32_t>(nodes.size());
                Node& node = nodes.emplace_back();
                node.parent = parent;
                node.slot = slot;
                node.is_async = is_async;
                node.thread = by_thread ? track.thread : kNoRow;
            }
            path[depth] = index;
            Node& node = nodes[index];
            const std::int64_t duration = clip.duration(ranges.start_ns[row], ranges.duration_ns[row]);
            ++node.count;
            node.total_ns += duration;
            node.self_ns += ranges.self_ns[row];
            if (depth == 0 && base != kNoRow && !is_async) nodes[base].total_ns += duration;
        }
    }
    return nodes;
}

/// The nodes in pre-order, siblings by falling total.
std::vector<std::uint32_t> order(const std::vector<Node>& nodes) {
    std::vector<std::uint32_t> first(nodes.size() + 1, 0);  // children of node i: [first[i], first[i + 1])
    std::vector<std::uint32_t> roots;
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
        if (nodes[i].parent == kNoRow) {
            roots.push_back(i);
        } else {
            ++first[nodes[i].parent + 1];
        }
    }
    for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
    std::vector<std::uint32_t> children(nodes.size() - roots.size());
    std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
        if (nodes[i].parent != kNoRow) children[next[nodes[i].parent]++] = i;
    }
    // The smallest first, because a stack turns the order round.
    auto smaller = [&](std::uint32_t a, std::uint32_t b) {
        if (nodes[a].is_async != nodes[b].is_async) return nodes[a].is_async;
        return nodes[a].total_ns != nodes[b].total_ns ? nodes[a].total_ns < nodes[b].total_ns : a > b;
    };
    std::vector<std::uint32_t> result;
    result.reserve(nodes.size());
    std::vector<std::uint32_t> stack = std::move(roots);
    std::sort(stack.begin(), stack.end(), smaller);
    while (!stack.empty()) {
        const std::uint32_t node = stack.back();
        stack.pop_back();
        result.push_back(node);
        const auto begin = children.begin() + first[node], end = children.begin() + first[node + 1];
        std::sort(begin, end, smaller);
        stack.insert(stack.end(), begin, end);
    }
    return result;
}

}  // namespace

CallTree call_tree(const Trace& trace, const CallTreeOptions& options) {
    const NameSlots slots(trace);
    const std::vector<Node> nodes = merge(trace, slots, options.by_thread);
    CallTree tree;
    tree.by_thread = options.by_thread;
    for (const Node& node : nodes) {
        if (node.parent == kNoRow && !node.is_async) tree.recorded_ns += node.total_ns;
    }
    std::vector<std::uint32_t> place(nodes.size());  // of a node in the result
    tree.nodes.reserve(nodes.size());
    for (const std::uint32_t index : order(nodes)) {
        const Node& node = nodes[index];
        place[index] = static_cast<std::uint32_t>(tree.nodes.size());
        CallTreeNode& out = tree.nodes.emplace_back();
        out.name = node.is_thread ? trace.string(trace.threads()[node.thread].name) : slots.names[node.slot];
        if (node.parent != kNoRow) {
            out.parent = place[node.parent];
            out.depth = tree.nodes[out.parent].depth + 1;
        }
        out.thread = node.thread;
        out.is_thread = node.is_thread;
        out.is_async = node.is_async;
        out.count = node.count;
        out.total_ns = node.total_ns;
        out.self_ns = node.self_ns;
        if (tree.recorded_ns > 0)
            out.share = static_cast<double>(node.total_ns) / static_cast<double>(tree.recorded_ns);
    }
    return tree;
}

}  // namespace kymo
