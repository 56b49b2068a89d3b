// path_tree.h: a tree of names that grows as paths are added; every path has one node.
#pragma once

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
    template <class IsKept>
    void remove_unless(const IsKept& is_kept) {
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

}  // namespace marey
