// path_tree.h: a tree of names that grows as paths are added; every path has one node. PathGrowth builds it
// in several passes, without the paths below nodes that are too small to matter.
#pragma once

#include <algorithm>
#include <limits>

#include <marey/trace.h>

#include "analyze/track_place.h"

namespace marey {

class PathTree {
  public:
    struct Node {
        std::uint32_t parent = kNoRow;  ///< smaller than the node's own number; kNoRow for roots
        std::uint32_t slot = 0;         ///< slot of the name
        Row thread = kNoRow;
        bool is_thread = false;
        Place place = Place::Host;
        std::uint64_t count = 0;
        std::int64_t total_ns = 0;
        std::int64_t self_ns = 0;
    };
    std::vector<Node> nodes;

    PathTree() : entries_(1024) {}

    /// The node for `slot` under `parent`. Adds it if there is none.
    std::uint32_t child(std::uint32_t parent, std::uint32_t slot) {
        Entry& entry = entry_at(key_of(parent, slot));
        if (entry.node == kNoRow)
            add(entry, parent, slot, parent == kNoRow ? Place::Host : nodes[parent].place);
        return entry.node;
    }
    /// The same for the outermost range of a path; `base` is kNoRow or the node of a thread.
    std::uint32_t root(std::uint32_t base, std::uint32_t slot, Place place) {
        Entry& entry = entry_at(key_of(root_group(base, place), slot));
        if (entry.node == kNoRow) add(entry, base, slot, place);
        return entry.node;
    }
    /// Adds a node that child() and root() never return.
    std::uint32_t add(const Node& node) {
        nodes.push_back(node);
        return static_cast<std::uint32_t>(nodes.size() - 1);
    }

    /// Removes nodes, and numbers the others again in the same order. Nodes below a removed one must be
    /// removed too. Only for trees whose nodes come from child() and from root() without a base.
    void remove_unless(const auto& is_kept) {
        std::vector<std::uint32_t> place(nodes.size(), kNoRow);
        std::uint32_t kept = 0;
        for (std::uint32_t i = 0; i < nodes.size(); ++i) {
            if (!is_kept(i)) continue;
            place[i] = kept;
            if (nodes[i].parent != kNoRow) nodes[i].parent = place[nodes[i].parent];
            nodes[kept++] = nodes[i];
        }
        nodes.resize(kept);
        entries_.assign(entries_.size(), {});
        for (std::uint32_t i = 0; i < kept; ++i) {
            const std::uint32_t parent = nodes[i].parent;
            const std::uint64_t key =
                key_of(parent == kNoRow ? root_group(parent, nodes[i].place) : parent, nodes[i].slot);
            locate(entries_, key) = {key, i};
        }
    }

  private:
    struct Entry {
        std::uint64_t key = 0;
        std::uint32_t node = kNoRow;
    };

    /// The entry of a key, with the key in it.
    Entry& entry_at(std::uint64_t key) {
        if (nodes.size() * 2 >= entries_.size()) grow();
        Entry& entry = locate(entries_, key);
        entry.key = key;
        return entry;
    }
    void add(Entry& entry, std::uint32_t parent, std::uint32_t slot, Place place) {
        entry.node = static_cast<std::uint32_t>(nodes.size());
        Node& node = nodes.emplace_back();
        node.parent = parent;
        node.slot = slot;
        node.place = place;
        if (parent != kNoRow) node.thread = nodes[parent].thread;
    }
    static std::uint32_t root_group(std::uint32_t base, Place place) noexcept {
        return base ^ static_cast<std::uint32_t>(place) << 30;
    }
    static std::uint64_t key_of(std::uint32_t group, std::uint32_t slot) noexcept {
        return std::uint64_t{group} << 32 | slot;
    }
    static Entry& locate(std::vector<Entry>& entries, std::uint64_t key) {
        const std::uint64_t hash = (key ^ key >> 29) * 0x9E3779B97F4A7C15u;
        const std::size_t mask = entries.size() - 1;
        std::size_t i = (hash >> 20) & mask;
        while (entries[i].node != kNoRow && entries[i].key != key) i = (i + 1) & mask;
        return entries[i];
    }
    void grow() {
        std::vector<Entry> larger(entries_.size() * 2);
        for (const Entry& entry : entries_) {
            if (entry.node != kNoRow) locate(larger, entry.key) = entry;
        }
        entries_.swap(larger);
    }

    /// Open addressing; grows when half full; entries are never removed.
    std::vector<Entry> entries_;
};

/// A trace can have as many paths as ranges. So a pass that meets too many of them goes on with the upper
/// levels only; then their nodes are complete, and the next pass continues below those that are not narrow.
/// For trees without threads. Each pass visits the same paths, and adds values to new nodes only.
class PathGrowth {
  public:
    explicit PathGrowth(PathTree& tree) : tree_(tree) {}

    std::uint32_t root(std::uint32_t slot, Place place) { return known(tree_.root(kNoRow, slot, place), 0); }
    /// The node for `slot` under `parent`; kNoRow: the path ends there in this pass.
    std::uint32_t child(std::uint32_t parent, std::uint32_t slot) {
        const std::uint32_t level = level_[parent] + 1;
        if (level > last_level_ || is_narrow_[parent]) return kNoRow;
        return known(tree_.child(parent, slot), level);
    }
    /// Whether this pass made the node.
    bool is_new(std::uint32_t node) const noexcept { return node >= first_new_; }

    /// Whether this pass left out levels; then remove_left_out() removes the nodes for which is_left_out().
    bool is_cut() const noexcept { return last_level_ != kAllLevels; }
    bool is_left_out(std::uint32_t node) const noexcept { return level_[node] > last_level_; }
    void remove_left_out() {
        tree_.remove_unless([&](std::uint32_t node) { return !is_left_out(node); });
        std::erase_if(level_, [&](std::uint32_t level) { return level > last_level_; });
        is_narrow_.resize(level_.size());
    }

    /// Prepares the next pass, after remove_left_out(). `is_narrow(node)` tells whether the paths below a
    /// node can be left out; returns false if they all can.
    bool start_next_pass(const auto& is_narrow) {
        bool has_open = false;  // a node of the last level that is not narrow
        for (std::uint32_t node = first_new_; node < level_.size(); ++node) {
            if (level_[node] != last_level_) continue;  // the nodes below it are complete
            is_narrow_[node] = is_narrow(node);
            has_open |= !is_narrow_[node];
        }
        first_level_ = last_level_ + 1;
        last_level_ = kAllLevels;
        first_new_ = static_cast<std::uint32_t>(level_.size());
        next_check_ = level_.size() + kMostNodes;
        return has_open;
    }

  private:
    static constexpr std::uint32_t kAllLevels = std::numeric_limits<std::uint32_t>::max();
    static constexpr std::size_t kMostNodes = 1 << 18;  ///< of a pass, more or less: they stay in the cache

    std::uint32_t known(std::uint32_t node, std::uint32_t level) {
        if (node < level_.size()) return node;
        level_.push_back(level);
        is_narrow_.push_back(false);
        if (level_.size() > next_check_) leave_out_levels();
        return node;
    }

    /// Keeps the upper levels, at least one that is new.
    void leave_out_levels() {
        next_check_ = level_.size() + kMostNodes / 2;
        std::vector<std::size_t> nodes;  // per new level
        for (std::size_t node = first_new_; node < level_.size(); ++node) {
            const std::size_t level = level_[node] - first_level_;
            if (level >= nodes.size()) nodes.resize(level + 1);
            ++nodes[level];
        }
        std::size_t sum = 0, kept = 0;
        while (kept < nodes.size() && sum + nodes[kept] <= kMostNodes / 2) sum += nodes[kept++];
        const auto last = first_level_ + static_cast<std::uint32_t>(std::max<std::size_t>(kept, 1)) - 1;
        last_level_ = std::min(last_level_, last);
    }

    PathTree& tree_;
    std::vector<std::uint32_t> level_;  ///< per node: 0 for roots
    std::vector<bool> is_narrow_;       ///< per node
    std::uint32_t first_new_ = 0;
    std::uint32_t first_level_ = 0;          ///< of new nodes
    std::uint32_t last_level_ = kAllLevels;  ///< of this pass
    std::size_t next_check_ = kMostNodes;
};

}  // namespace marey
