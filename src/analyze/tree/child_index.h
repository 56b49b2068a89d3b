// child_index.h: the children of every node of a forest, in one array.
#pragma once

#include <marey/trace.h>

namespace marey {

/// Built from the parent of each node (kNoRow for roots). Children keep the order given by `order`.
class ChildIndex {
  public:
    ChildIndex() = default;
    ChildIndex(std::span<const std::uint32_t> parent, std::span<const std::uint32_t> order)
        : first_(parent.size() + 1, 0), children_(order.size()) {
        for (const std::uint32_t above : parent) ++first_[above == kNoRow ? parent.size() : above];
        std::uint32_t next = 0;
        for (std::uint32_t& first : first_) {
            const std::uint32_t count = first;
            first = next;
            next += count;
        }
        std::vector<std::uint32_t> place = first_;
        for (const std::uint32_t node : order) {
            const std::uint32_t above = parent[node];
            children_[place[above == kNoRow ? parent.size() : above]++] = node;
        }
    }

    std::span<const std::uint32_t> of(std::size_t node) const noexcept {
        return {children_.data() + first_[node], children_.data() + first_[node + 1]};
    }
    std::span<const std::uint32_t> roots() const noexcept {
        if (first_.empty()) return {};
        return {children_.data() + first_.back(), children_.data() + children_.size()};
    }

  private:
    std::vector<std::uint32_t> first_;  ///< per node, then for the roots
    std::vector<std::uint32_t> children_;
};

}  // namespace marey
