// table_response.cpp: /api/table, /api/flame, /api/sandwich, /api/steps, /api/explain and so on: what the
// verbs of the command report, for a selection.
#include <algorithm>
#include <utility>

#include <marey/analyze.h>
#include <marey/call_tree.h>
#include <marey/results.h>
#include <marey/samples.h>
#include <marey/stacks.h>
#include <marey/table.h>

#include "serve/api.h"
#include "serve/flame_tree.h"
#include "serve/name_filter.h"

namespace marey::serve {
namespace {

/// The measure of a flame graph made from a call tree.
enum class FlameValue : std::uint8_t { Total, Self, Calls };

/// Adds to each value those of all nodes below it.
void add_up(std::vector<FlameNode>& nodes) {
    for (std::size_t i = nodes.size(); i-- > 0;) {
        if (nodes[i].parent != kNoRow) nodes[nodes[i].parent].value += nodes[i].value;
    }
}

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

void write_stack_flame(JsonWriter& json, const Request& request, const char* metric) {
    StackOptions options;
    options.metric = metric;
    const std::vector<StackNode> stacks = stack_tree(request.selected(), options);
    write_flame(json, flame_nodes(stacks), flame_pixels(request.query));
}

void write_called_flame(JsonWriter& json, const Request& request, FlameValue value) {
    CallTreeOptions options{.bottom_up = value == FlameValue::Self,
                            .caller_levels = kCallerLevels,
                            .merge_steps = true,
                            .parts = flame_pixels(request.query)};
    const CallTree tree = call_tree(request.selected(), options);
    write_flame(json, flame_nodes(tree, value), flame_pixels(request.query));
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
    const Trace trace = with_sampled_functions(request.selected());
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
    const std::uint32_t pixels = flame_pixels(request.query);
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

Response explain_response(const Request& request) {
    const Trace trace = request.selected();
    std::vector<Finding> findings = explain(trace);
    for (Finding& finding : findings) {
        if (finding.start_ns >= 0) finding.start_ns = request.relative(finding.start_ns);
    }
    return {200, "application/json", result_json(findings_result(trace, findings))};
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
