// flame.cpp: the tree of a flame graph, without the nodes that are too narrow to see.
#include "serve/flame.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "serve/trace_names.h"

namespace marey::serve {
namespace {

/// Adds to each value those of all nodes below it.
void add_up(std::vector<FlameNode>& nodes) {
    for (std::size_t i = nodes.size(); i-- > 0;) {
        if (nodes[i].parent != kNoRow) nodes[nodes[i].parent].value += nodes[i].value;
    }
}

/// The names of sites that look different in folded stacks, by that form.
std::unordered_map<std::string, std::string_view> names_in_stacks(const Trace& trace) {
    std::unordered_map<std::string, std::string_view> names;
    for (const SiteInfo& site : trace.sites()) {
        const std::string_view name = trace.string(site.name);
        std::string folded(name);
        for (char& c : folded) {
            if (c == ' ' || c == ';' || c == '\t' || c == '\n' || c == '\r') c = '_';
        }
        if (folded != name) names.emplace(std::move(folded), name);
    }
    return names;
}

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
            std::stable_sort(siblings.begin(), siblings.end(), [&](std::uint32_t a, std::uint32_t b) {
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
        json_.begin_array()
            .value(parent)
            .value(name)
            .value(node.value)
            .value(node.own)
            .value(node.count)
            .end_array();
        ++written_;
    }
    /// The siblings from `first` on, which are all narrow, as one node.
    void write_rest(const std::vector<std::uint32_t>& siblings, std::size_t first, std::int64_t parent) {
        FlameNode rest;
        for (std::size_t i = first; i < siblings.size(); ++i) {
            rest.value += nodes_[siblings[i]].value;
            rest.own += nodes_[siblings[i]].own;
            rest.count += nodes_[siblings[i]].count;
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

}  // namespace

std::vector<FlameNode> flame_nodes(const CallTree& tree, FlameValue value) {
    const bool has_host = std::any_of(tree.nodes.begin(), tree.nodes.end(), [](const CallTreeNode& node) {
        return !node.is_async && !node.is_device;
    });
    std::vector<FlameNode> nodes;
    std::vector<std::uint32_t> places(tree.nodes.size(), kNoRow);
    for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
        const CallTreeNode& node = tree.nodes[i];
        if (node.is_async || node.is_device == has_host) continue;
        FlameNode made{node.parent == kNoRow ? kNoRow : places[node.parent], node.name, node.total_ns,
                       node.self_ns, node.count};
        if (value == FlameValue::Self) made.value = node.self_ns;
        if (value == FlameValue::Calls) {
            made.own = static_cast<std::int64_t>(node.count);
            made.value = made.own + static_cast<std::int64_t>(node.left_out);
        }
        places[i] = static_cast<std::uint32_t>(nodes.size());
        nodes.push_back(made);
    }
    if (value == FlameValue::Calls) add_up(nodes);
    if (value == FlameValue::Self) {  // the part without a further caller
        for (FlameNode& node : nodes) node.own = node.value;
        for (const FlameNode& node : nodes) {
            if (node.parent != kNoRow) nodes[node.parent].own -= node.value;
        }
    }
    return nodes;
}

std::vector<FlameNode> flame_nodes(const std::vector<FoldedStack>& stacks, const Trace& trace) {
    std::vector<FlameNode> nodes;
    std::map<std::pair<std::uint32_t, std::string_view>, std::uint32_t> places;
    for (const FoldedStack& stack : stacks) {
        const std::string_view text = stack.stack;
        std::uint32_t node = kNoRow;
        for (std::size_t at = 0; at <= text.size();) {
            const std::size_t end = std::min(text.find(';', at), text.size());
            std::string_view name = text.substr(at, end - at);
            if (name.starts_with("ProfilerStep#")) name = "ProfilerStep*";  // one tree for all steps
            const auto [found, is_new] =
                places.emplace(std::pair(node, name), static_cast<std::uint32_t>(nodes.size()));
            if (is_new) nodes.push_back({node, name, 0, 0, 0});
            node = found->second;
            at = end + 1;
        }
        nodes[node].own += stack.value;
        nodes[node].value += stack.value;
    }
    const auto names = names_in_stacks(trace);
    for (FlameNode& node : nodes) {
        if (const auto known = names.find(std::string(node.name)); known != names.end())
            node.name = known->second;
    }
    add_up(nodes);
    return nodes;
}

void write_flame(JsonWriter& json, const std::vector<FlameNode>& nodes, std::uint32_t pixels) {
    FlameWriter(json, nodes, pixels).write();
}

}  // namespace marey::serve
