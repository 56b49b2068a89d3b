// compared_tree.cpp: the rows of a comparison as one tree, for differential flame graphs.
#include <algorithm>

#include "analyze/compare/run_paths.h"

namespace marey {
namespace {

/// Adds the paths of both sides at the places that they have now.
class ComparedTree {
  public:
    explicit ComparedTree(const Comparison::Paths& paths)
        : paths_(paths), place_(paths.tree.nodes.size(), kNoNode) {}

    ComparedPath& at(std::uint32_t node) {
        std::vector<std::uint32_t> way;  // a stack of our own: trees may be very deep
        for (node = now(node); node != kNoNode && place_[node] == kNoNode; node = above(node))
            way.push_back(node);
        std::uint32_t place = node == kNoNode ? kNoNode : place_[node];
        for (; !way.empty(); way.pop_back()) {
            const std::uint32_t made = way.back(), before = paths_.old_of[made];
            const PathNames::Name& name = paths_.name(made);
            ComparedPath& path = tree.emplace_back();
            path.parent = place;
            path.name = name.text;
            if (before != kNoNode && paths_.name(before).text != name.text)
                path.old_name = paths_.name(before).text;
            path.match = paths_.match[made];
            path.is_device = paths_.tree.nodes[made].place == Place::Device;
            place_[made] = place = static_cast<std::uint32_t>(tree.size() - 1);
        }
        return tree[place];
    }

    std::vector<ComparedPath> tree;

  private:
    std::uint32_t now(std::uint32_t node) const {
        const std::uint32_t later = node == kNoNode ? kNoNode : paths_.new_of[node];
        return later == kNoNode ? node : later;
    }
    std::uint32_t above(std::uint32_t node) const { return now(paths_.tree.nodes[node].parent); }

    const Comparison::Paths& paths_;
    std::vector<std::uint32_t> place_;  ///< by node
};

}  // namespace

std::vector<ComparedPath> compared_tree(const Comparison& comparison) {
    if (!comparison.paths || comparison.options.by != CompareBy::Path) return {};
    ComparedTree all(*comparison.paths);
    for (const ComparedRow& row : comparison.rows) {
        ComparedPath& path = all.at(row.node != kNoNode ? row.node : row.old_node);
        path.own_before = path.before = row.value.before;
        path.own_after = path.after = row.value.after;
        path.width = std::max({row.value.before, row.value.after, 0.0});
        path.old_calls = row.old_calls;
        path.new_calls = row.new_calls;
    }
    for (std::size_t i = all.tree.size(); i-- > 0;) {
        const ComparedPath& path = all.tree[i];
        if (path.parent == kNoNode) continue;
        ComparedPath& parent = all.tree[path.parent];
        parent.before += path.before;
        parent.after += path.after;
        parent.width += path.width;
    }
    return std::move(all.tree);
}

}  // namespace marey
