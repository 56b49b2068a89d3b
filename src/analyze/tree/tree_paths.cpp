// tree_paths.cpp: the heaviest paths of a call tree, and pruning a tree.
#include <algorithm>

#include <marey/call_tree.h>

namespace marey {

std::size_t limit_tree(CallTree& tree, const TreeLimits& limits) {
    std::vector<std::uint32_t> place(tree.nodes.size(), kNoRow);  // kNoRow: removed
    std::size_t kept = 0;
    for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
        CallTreeNode& node = tree.nodes[i];
        if (node.parent != kNoRow && place[node.parent] == kNoRow) continue;
        if (limits.min_share > 0 && node.share < limits.min_share) continue;
        if (limits.max_depth > 0 && node.depth >= limits.max_depth) continue;
        if (limits.max_nodes > 0 && kept >= limits.max_nodes) continue;
        place[i] = static_cast<std::uint32_t>(kept);
        if (node.parent != kNoRow) node.parent = place[node.parent];
        if (kept != i) tree.nodes[kept] = std::move(node);
        ++kept;
    }
    const std::size_t gone = tree.nodes.size() - kept;
    tree.nodes.resize(kept);
    return gone;
}

std::vector<std::uint32_t> hot_path(const CallTree& tree) {
    const std::vector<CallTreeNode>& nodes = tree.nodes;
    const auto is_heavier = [&](std::uint32_t a, std::uint32_t b) {
        const auto rank = [](const CallTreeNode& node) { return node.is_async ? 2 : node.is_device ? 1 : 0; };
        const int left = rank(nodes[a]), right = rank(nodes[b]);
        return left != right ? left < right : nodes[a].total_ns > nodes[b].total_ns;
    };
    // The children of a range are sorted in descending order; roots and children of a thread may be in time
    // order.
    const auto heaviest_below = [&](std::uint32_t node) {
        std::uint32_t best = kNoRow;
        for (std::uint32_t i = node == kNoRow ? 0 : node + 1; i < nodes.size(); ++i) {
            if (node != kNoRow && nodes[i].depth <= nodes[node].depth) break;
            if (nodes[i].parent != node) continue;
            if (best == kNoRow || is_heavier(i, best)) best = i;
            if (node != kNoRow && !nodes[node].is_thread) break;
        }
        return best;
    };
    std::vector<std::uint32_t> path;
    for (std::uint32_t next = heaviest_below(kNoRow); next != kNoRow; next = heaviest_below(path.back())) {
        if (!path.empty() && !nodes[path.back()].is_thread &&
            nodes[path.back()].self_ns >= nodes[next].total_ns)
            break;
        path.push_back(next);
    }
    return path;
}

std::vector<std::uint32_t> heaviest_nodes(const CallTree& tree, std::size_t count) {
    std::vector<std::uint32_t> nodes;
    for (std::uint32_t i = 0; i < tree.nodes.size(); ++i) {
        if (!tree.nodes[i].is_async && tree.nodes[i].self_ns > 0) nodes.push_back(i);
    }
    const std::size_t wanted = std::min(count, nodes.size());
    std::partial_sort(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(wanted), nodes.end(),
                      [&](std::uint32_t a, std::uint32_t b) {
                          const std::int64_t left = tree.nodes[a].self_ns, right = tree.nodes[b].self_ns;
                          return left != right ? left > right : a < b;
                      });
    nodes.resize(wanted);
    return nodes;
}

std::vector<std::uint32_t> path_to(const CallTree& tree, std::uint32_t node) {
    std::vector<std::uint32_t> path;
    for (; node < tree.nodes.size(); node = tree.nodes[node].parent) path.push_back(node);
    std::ranges::reverse(path);
    return path;
}

}  // namespace marey
