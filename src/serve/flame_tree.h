// flame_tree.h: trees as the page draws them: flame graphs of one trace, and of the difference of two.
#pragma once

#include <algorithm>
#include <unordered_map>

#include <marey/compare.h>

#include "json/json_writer.h"
#include "serve/api.h"
#include "serve/trace_names.h"

namespace marey::serve {

/// A node of a flame graph. `value` is its width, `own` the part that no child covers.
struct FlameNode {
    std::uint32_t parent = kNoRow;  ///< less than the node's own number; kNoRow for roots
    std::string_view name;
    std::int64_t value = 0;
    std::int64_t own = 0;
    std::uint64_t count = 0;
    const ComparedPath* compared = nullptr;  ///< in a differential flame graph
};

class FlameWriter {
  public:
    FlameWriter(JsonWriter& json, const std::vector<FlameNode>& nodes, std::uint32_t pixels)
        : json_(json), nodes_(nodes), children_(nodes.size() + 1) {
        std::int64_t total = 0;
        for (std::uint32_t i = 0; i < nodes.size(); ++i) {
            const std::uint32_t parent = nodes[i].parent;
            children_[parent == kNoRow ? nodes.size() : parent].push_back(i);
            if (parent == kNoRow) total += nodes[i].value;
        }
        for (std::vector<std::uint32_t>& siblings : children_) {
            std::ranges::stable_sort(siblings, [&](std::uint32_t a, std::uint32_t b) {
                return nodes_[a].value > nodes_[b].value;
            });
        }
        total_ = total;
        least_ = total / std::max<std::int64_t>(pixels, 1);
    }

    void write() {
        json_.member("total", total_).key("nodes").begin_array();
        struct Open {
            const std::vector<std::uint32_t>* siblings;
            std::size_t next;
            std::int64_t parent;  ///< number of the node that was written
        };
        std::vector<Open> open{{&children_.back(), 0, -1}};  // a stack of our own: trees may be very deep
        while (!open.empty()) {
            Open& top = open.back();
            if (top.next == top.siblings->size()) {
                open.pop_back();
                continue;
            }
            const std::uint32_t i = (*top.siblings)[top.next];
            if (nodes_[i].value <= least_ && top.siblings->size() > top.next + 1) {
                write_rest(*top.siblings, top.next, top.parent);
                top.next = top.siblings->size();
                continue;
            }
            ++top.next;
            write_node(top.parent, name_number(nodes_[i].name), nodes_[i]);
            if (!children_[i].empty() && nodes_[i].value > least_)
                open.push_back({&children_[i], 0, written_ - 1});
        }
        json_.end_array().key("names").begin_array();
        for (const std::string_view name : names_) json_.value(short_name(name));
        json_.end_array();
    }

  private:
    std::int64_t name_number(std::string_view name) {
        const auto [found, is_new] = numbers_.emplace(name, static_cast<std::int64_t>(names_.size()));
        if (is_new) names_.push_back(name);
        return found->second;
    }
    void write_node(std::int64_t parent, std::int64_t name, const FlameNode& node) {
        json_.begin_array().value(parent).value(name).value(node.value).value(node.own).value(node.count);
        if (const ComparedPath* const its = node.compared) {
            json_.begin_array();
            for (const double value :
                 {its->before, its->after, its->own_before, its->own_after, its->old_calls, its->new_calls})
                json_.value(value);
            json_.value(kRowMatchNames[static_cast<std::size_t>(its->match)]);
            json_.value(its->old_name.empty() ? std::int64_t{-1} : name_number(its->old_name)).end_array();
        }
        json_.end_array();
        ++written_;
    }
    /// The siblings from `first` on, which are all narrow, as one node.
    void write_rest(const std::vector<std::uint32_t>& siblings, std::size_t first, std::int64_t parent) {
        FlameNode rest;
        ComparedPath sum;
        for (std::size_t i = first; i < siblings.size(); ++i) {
            const FlameNode& node = nodes_[siblings[i]];
            rest.value += node.value;
            rest.own += node.own;
            rest.count += node.count;
            if (node.compared == nullptr) continue;
            sum.before += node.compared->before;
            sum.after += node.compared->after;
            rest.compared = &sum;
        }
        if (rest.value > 0) write_node(parent, -1, rest);
    }

    JsonWriter& json_;
    const std::vector<FlameNode>& nodes_;
    std::vector<std::vector<std::uint32_t>> children_;  ///< per node; the last: roots
    std::int64_t total_ = 0;
    std::int64_t least_ = 0;  ///< nodes up to this value are too narrow
    std::int64_t written_ = 0;
    std::vector<std::string_view> names_;
    std::unordered_map<std::string_view, std::int64_t> numbers_;
};

/// Writes the nodes in pre-order, largest siblings first; siblings narrower than one of `pixels` become one
/// node without a name.
inline void write_flame(JsonWriter& json, const std::vector<FlameNode>& nodes, std::uint32_t pixels) {
    FlameWriter(json, nodes, pixels).write();
}

inline std::uint32_t flame_pixels(const Query& query) {
    return static_cast<std::uint32_t>(query.integer("pixels", 1, kMaxPixels, 1500));
}

}  // namespace marey::serve
