// table_response.cpp: /api/table, /api/flame, /api/sandwich, /api/steps, /api/gpu and /api/memory: what the
// verbs of the command report, for a selection.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include <marey/analyze.h>
#include <marey/call_tree.h>
#include <marey/results.h>
#include <marey/stacks.h>
#include <marey/table.h>

#include "json/json_writer.h"
#include "serve/api.h"
#include "serve/name_filter.h"
#include "serve/trace_names.h"

namespace marey::serve {
namespace {

/// A node of a flame graph. `value` is its width, `own` the part that no child covers.
struct FlameNode {
    std::uint32_t parent = kNoRow;  ///< less than the node's own number; kNoRow for roots
    std::string_view name;
    std::int64_t value = 0;
    std::int64_t own = 0;
    std::uint64_t count = 0;
};

/// The measure of a flame graph made from a call tree.
enum class FlameValue : std::uint8_t { Total, Self, Calls };

/// Adds to each value those of all nodes below it.
void add_up(std::vector<FlameNode>& nodes) {
    for (std::size_t i = nodes.size(); i-- > 0;) {
        if (nodes[i].parent != kNoRow) nodes[nodes[i].parent].value += nodes[i].value;
    }
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

// The names of flame nodes refer to the tree.
std::vector<FlameNode> flame_nodes(const CallTree& tree, FlameValue value) {
    const bool has_host = std::ranges::any_of(
        tree.nodes, [](const CallTreeNode& node) { return !node.is_async && !node.is_device; });
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

std::vector<FlameNode> flame_nodes(const std::vector<StackNode>& stacks) {
    std::vector<FlameNode> nodes;
    nodes.reserve(stacks.size());
    for (const StackNode& stack : stacks)
        nodes.push_back({stack.parent, stack.name, stack.value, stack.value, 0});
    add_up(nodes);
    return nodes;
}

/// Writes the nodes in pre-order, largest siblings first; siblings narrower than one of `pixels` become one
/// node without a name.
void write_flame(JsonWriter& json, const std::vector<FlameNode>& nodes, std::uint32_t pixels) {
    FlameWriter(json, nodes, pixels).write();
}

constexpr std::int64_t kMaxTableRows = 1'000'000;
constexpr std::int64_t kDefaultTableRows = 10'000;
constexpr std::uint32_t kCallerLevels = 64;

GroupBy group_of(const Query& query) {
    const auto* const found = std::ranges::find(kGroupNames, query.find("by").value_or("name"));
    if (found == std::end(kGroupNames))
        throw RequestError(400,
                           "parameter 'by': expected name, function, line, file, module, package or process");
    return static_cast<GroupBy>(found - std::begin(kGroupNames));
}

std::uint32_t flame_pixels(const Request& request) {
    return static_cast<std::uint32_t>(request.query.integer("pixels", 1, kMaxPixels, 1500));
}

void write_stack_flame(JsonWriter& json, const Request& request, const char* metric) {
    StackOptions options;
    options.metric = metric;
    const std::vector<StackNode> stacks = stack_tree(request.selected(), options);
    write_flame(json, flame_nodes(stacks), flame_pixels(request));
}

void write_called_flame(JsonWriter& json, const Request& request, FlameValue value) {
    CallTreeOptions options{.bottom_up = value == FlameValue::Self,
                            .caller_levels = kCallerLevels,
                            .merge_steps = true,
                            .parts = flame_pixels(request)};
    const CallTree tree = call_tree(request.selected(), options);
    write_flame(json, flame_nodes(tree, value), flame_pixels(request));
}

/// The name that a sandwich is about.
std::string sandwich_name(const Request& request) {
    const Trace& trace = request.trace();
    if (request.query.find("site"))
        return std::string(trace.string(trace.sites()[request.row("site", trace.sites().size())].name));
    std::string name = request.query.text("name");
    if (name.empty()) throw RequestError(400, "expected the parameter 'site' or 'name'");
    return name;
}

}  // namespace

Response table_response(const Request& request) {
    const Query& query = request.query;
    AverageOptions options;  // as `marey report --json`
    options.group_by = group_of(query);
    options.by_thread = query.flag("thread");
    options.by_input_shape = query.flag("shape");
    options.merge_repeated = false;
    // Without the columns that need further passes, a table of many ranges takes a third of the time.
    options.flops = options.covered = options.percentiles = options.nesting = !query.flag("quick");
    const NameFilter filter(query);
    TableOptions table{.sort_by = std::string(query.find("sort").value_or("self")),
                       .ascending = query.flag("ascending"),
                       .row_limit = query.integer("limit", 0, kMaxTableRows, kDefaultTableRows),
                       .shows = [&](const AverageRow& row) { return filter.matches(row.name); }};
    const Trace trace = request.selected();
    return {200, "application/json", averages_json(trace, key_averages(trace, options), table)};
}

Response flame_response(const Request& request) {
    const std::string value(request.query.find("value").value_or("total"));
    return json_response([&](JsonWriter& json) {
        json.member("value", value);
        if (value == "total" || value == "self") {
            json.member("unit", "ns");
            write_called_flame(json, request, value == "self" ? FlameValue::Self : FlameValue::Total);
        } else if (value == "calls") {
            json.member("unit", "calls");
            write_called_flame(json, request, FlameValue::Calls);
        } else if (value == "bytes") {
            json.member("unit", "bytes");
            write_stack_flame(json, request, "allocated_bytes");
        } else if (value == "gpu") {
            json.member("unit", "ns");
            write_stack_flame(json, request, "self_device_time_total");
        } else {
            throw RequestError(400, "parameter 'value': expected total, self, calls, bytes or gpu");
        }
    });
}

Response sandwich_response(const Request& request) {
    const std::string name = sandwich_name(request);
    const Trace trace = request.selected();
    const std::uint32_t pixels = flame_pixels(request);
    const CallTree callees = call_tree(trace, {.inside = name, .merge_steps = true, .parts = pixels});
    const CallTree callers = call_tree(trace, {.bottom_up = true,
                                               .caller_levels = kCallerLevels,
                                               .callers_of = name,
                                               .merge_steps = true,
                                               .parts = pixels});
    std::uint64_t count = 0;
    std::int64_t total = 0, self = 0;
    for (const CallTreeNode& node : callers.nodes) {
        if (node.parent != kNoRow) continue;
        count += node.count;
        total += node.total_ns;
        self += node.self_ns;
    }
    return json_response([&](JsonWriter& json) {
        write_name(json, name);
        json.member("count", count).member("total_ns", total).member("self_ns", self);
        for (const auto& [key, tree] : {std::pair("callers", &callers), std::pair("callees", &callees)}) {
            json.key(key).begin_object().member("value", "total").member("unit", "ns");
            write_flame(json, flame_nodes(*tree, FlameValue::Total), pixels);
            json.end_object();
        }
    });
}

Response steps_response(const Request& request) {
    const Trace trace = request.selected();
    StepOptions options;
    options.name = request.query.text("name");
    return {200, "application/json", result_json(step_result(trace, step_report(trace, options)))};
}

Response gpu_response(const Request& request) {
    const Trace trace = request.selected();
    return {200, "application/json", result_json(gpu_result(trace, gpu_use(trace)))};
}

Response memory_response(const Request& request) {
    const Trace trace = request.selected();
    return {200, "application/json",
            result_json(
                memory_result(trace, memory_use(trace, {.by_name = request.query.text("by") == "name"})))};
}

}  // namespace marey::serve
