// matched_paths.cpp: first equal names below matched parents, then equal names elsewhere, then guesses.
#include "analyze/compare/matched_paths.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace marey {
namespace {

using Nodes = std::vector<std::uint32_t>;

constexpr std::size_t kMostGuesses = 8;  // below one parent: of more, most would be wrong

class Matching {
  public:
    Matching(const Comparison::Paths& paths, const std::vector<bool> (&has)[2], MatchedPaths& result)
        : paths_(paths), nodes_(paths.tree.nodes), result_(result) {
        const std::size_t count = nodes_.size();
        result.match.assign(count, RowMatch::Path);
        result.partner.assign(count, kNoNode);
        for (std::uint32_t node = 0; node < count; ++node) {
            if (has[0][node] == has[1][node]) continue;
            const int side = has[1][node];
            result.match[node] = side == 1 ? RowMatch::New : RowMatch::Gone;
            children_[side][nodes_[node].parent].push_back(node);
            unmatched_[side].push_back(node);
        }
    }

    void run() {
        for (const auto& [parent, nodes] : children_[0]) {  // below the paths that both sides have
            const bool is_both = parent == kNoRow || result_.match[parent] == RowMatch::Path;
            if (is_both) match_below(parent, parent);
        }
        const auto text = [&](std::uint32_t node) { return nodes_[node].slot; };
        const auto without_line = [&](std::uint32_t node) { return this->without_line(node); };
        match_elsewhere(text);
        match_elsewhere(without_line);
        guess();
    }

  private:
    /// Distinct for names of threads and of devices.
    std::uint64_t without_line(std::uint32_t node) const {
        return std::uint64_t{paths_.name(node).without_line} * 2 + paths_.name(node).is_device;
    }

    Nodes open(int side, std::uint32_t parent) const {
        const auto found = children_[side].find(parent);
        Nodes nodes = found == children_[side].end() ? Nodes() : found->second;
        std::erase_if(nodes, [&](std::uint32_t node) { return !is_open(node); });
        return nodes;
    }
    bool is_open(std::uint32_t node) const {
        return result_.match[node] == RowMatch::New || result_.match[node] == RowMatch::Gone;
    }

    void pair(std::uint32_t before, std::uint32_t after, RowMatch match) {
        result_.match[before] = result_.match[after] = match;
        result_.partner[before] = after;
        result_.partner[after] = before;
        pairs_.emplace_back(before, after);
    }

    /// Pairs nodes with equal keys, in order.
    void pair_equal(Nodes before, Nodes after, const auto& key, RowMatch match) {
        std::ranges::stable_sort(before, {}, key);
        std::ranges::stable_sort(after, {}, key);
        for (std::size_t i = 0, j = 0; i < before.size() && j < after.size();) {
            if (key(before[i]) == key(after[j])) {
                pair(before[i++], after[j++], match);
            } else {
                key(before[i]) < key(after[j]) ? ++i : ++j;
            }
        }
    }

    /// Below a matched pair, and below the pairs found there.
    void match_below(std::uint32_t before, std::uint32_t after) {
        const std::size_t first = pairs_.size();
        match_children(before, after);
        for (std::size_t i = first; i < pairs_.size(); ++i) match_children(pairs_[i].first, pairs_[i].second);
    }
    void match_children(std::uint32_t before, std::uint32_t after) {
        if (before != after) {
            const RowMatch match = result_.match[before];  // as their parents: only that is unusual
            pair_equal(
                open(0, before), open(1, after), [&](std::uint32_t n) { return nodes_[n].slot; },
                match == RowMatch::Function ? RowMatch::Path : match);
        }
        pair_equal(
            open(0, before), open(1, after), [&](std::uint32_t n) { return without_line(n); },
            RowMatch::Function);
    }

    void match_elsewhere(const auto& key) {
        std::map<std::uint64_t, Nodes> candidates;
        for (const std::uint32_t node : unmatched_[1]) {
            if (is_open(node)) candidates[key(node)].push_back(node);
        }
        for (auto& [name, nodes] : candidates) std::ranges::reverse(nodes);
        for (const std::uint32_t node : unmatched_[0]) {
            const auto found = candidates.find(key(node));
            if (!is_open(node) || found == candidates.end()) continue;
            Nodes& nodes = found->second;
            while (!nodes.empty() && !is_open(nodes.back())) nodes.pop_back();
            if (nodes.empty()) continue;
            const std::uint32_t after = nodes.back();
            pair(node, after, RowMatch::Moved);
            match_below(node, after);
        }
    }

    void guess() {
        std::vector<std::pair<std::uint32_t, std::uint32_t>> parents;
        for (const auto& [parent, nodes] : children_[0]) {
            if (parent == kNoRow ||
                (result_.match[parent] == RowMatch::Path && result_.partner[parent] == kNoNode))
                parents.emplace_back(parent, parent);
        }
        parents.insert(parents.end(), pairs_.begin(), pairs_.end());
        for (std::size_t i = 0; i < parents.size(); ++i) {
            const std::size_t first = pairs_.size();
            guess_below(parents[i].first, parents[i].second);
            parents.insert(parents.end(), pairs_.begin() + static_cast<std::ptrdiff_t>(first), pairs_.end());
        }
    }
    /// Pairs the leftovers of each kind if there are as many on both sides.
    void guess_below(std::uint32_t before, std::uint32_t after) {
        const auto kind = [&](std::uint32_t node) {
            const PathNames::Name& name = paths_.name(node);
            return std::tuple(nodes_[node].place, name.scope, name.kind);
        };
        std::map<decltype(kind(0)), std::pair<Nodes, Nodes>> kinds;
        for (const std::uint32_t node : open(0, before)) kinds[kind(node)].first.push_back(node);
        for (const std::uint32_t node : open(1, after)) kinds[kind(node)].second.push_back(node);
        for (const auto& [its, sides] : kinds) {
            if (sides.first.size() != sides.second.size() || sides.first.size() > kMostGuesses) continue;
            for (std::size_t i = 0; i < sides.first.size(); ++i) {
                pair(sides.first[i], sides.second[i], RowMatch::Guess);
                match_below(sides.first[i], sides.second[i]);
            }
        }
    }

    const Comparison::Paths& paths_;
    const std::vector<PathTree::Node>& nodes_;
    MatchedPaths& result_;
    std::map<std::uint32_t, Nodes> children_[2];  ///< nodes of one side only, by parent
    Nodes unmatched_[2];                          ///< the same, in order
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs_;
};

}  // namespace

MatchedPaths::MatchedPaths(const Comparison::Paths& paths, const std::vector<bool> (&has)[2]) {
    Matching(paths, has, *this).run();
    const std::size_t count = paths.names.names.size();
    std::vector<bool> known[2] = {std::vector<bool>(count), std::vector<bool>(count)};
    for (std::uint32_t node = 0; node < match.size(); ++node) {
        for (int side = 0; side < 2; ++side) {
            if (has[side][node]) known[side][paths.tree.nodes[node].slot] = true;
        }
    }
    old_of.assign(count, kNoNode);
    name_match.assign(count, RowMatch::Path);
    for (std::uint32_t name = 0; name < count; ++name) {
        renamed.push_back(name);
        if (known[0][name] != known[1][name])
            name_match[name] = known[1][name] ? RowMatch::New : RowMatch::Gone;
    }
    for (std::uint32_t node = 0; node < match.size(); ++node) {
        const std::uint32_t before = paths.tree.nodes[node].slot;
        if (partner[node] == kNoNode || name_match[before] != RowMatch::Gone) continue;
        const std::uint32_t after = paths.tree.nodes[partner[node]].slot;
        if (name_match[after] != RowMatch::New) continue;
        const bool is_same = paths.names.names[before].without_line == paths.names.names[after].without_line;
        name_match[before] = name_match[after] = is_same ? RowMatch::Function : RowMatch::Guess;
        renamed[before] = after;
        old_of[after] = before;
    }
}

}  // namespace marey
