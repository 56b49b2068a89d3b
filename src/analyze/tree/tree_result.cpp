// tree_result.cpp: the columns of call trees and of their hot paths.
#include <marey/results.h>

#include "analyze/result_keys.h"

namespace marey {
namespace tree_columns {
namespace {
using enum ResultUnit;
using enum ResultShown;

ResultRows<CallTree> totals_table() {
    ResultRows<CallTree> table("tree_totals", "The totals that shares of a call tree refer to", true);
    table.columns({
        {"recorded_ns", &CallTree::recorded_ns, "time that root ranges cover on all threads"},
        {"device_ns", &CallTree::device_ns, "time that devices were busy"},
        {"by_thread", &CallTree::by_thread, "the roots are threads"},
        {"bottom_up", &CallTree::bottom_up, "the roots are names, with callers below them"},
    });
    return table;
}

struct NodeRow {
    const Trace& trace;
    const CallTree& tree;
    std::uint32_t index;
    Row thread() const { return it().thread; }
    const CallTreeNode& it() const { return tree.nodes[index]; }
    std::vector<std::string> path() const {
        std::vector<std::string> names;
        for (const std::uint32_t node : path_to(tree, index)) names.push_back(tree.nodes[node].name);
        return names;
    }
};
std::vector<RowColumn<NodeRow>> time_columns() {
    return {
        {"total_ns", [](auto& r) { return r.it().total_ns; }, "time of these ranges", "total"},
        {"share", [](auto& r) { return r.it().share; },
         "total_ns (bottom-up: self_ns) as a share of recorded_ns or device_ns", "share"},
        {"self_ns", [](auto& r) { return r.it().self_ns; }, "time outside the ranges inside them", "self"},
        {"count", [](auto& r) { return r.it().count; }, "number of ranges", "count"},
    };
}
std::vector<RowColumn<NodeRow>> place_columns() {
    std::vector<RowColumn<NodeRow>> columns = {
        {"is_async", [](auto& r) { return r.it().is_async; }, "async ranges, in no sum and no share"},
        {"is_device", [](auto& r) { return r.it().is_device; }, "ran on a device"},
        {"is_thread", [](auto& r) { return r.it().is_thread; }, "stands for a thread, not for ranges"},
        {"step", [](auto& r) { return r.it().step; }, "number of the step, in trees of steps", "", No, None},
    };
    const std::vector<RowColumn<NodeRow>> thread = thread_key<NodeRow>();
    columns.insert(columns.end(), thread.begin(), thread.end());
    return columns;
}
ResultRows<NodeRow> nodes_table(const char* name, const char* description) {
    ResultRows<NodeRow> table(name, description);
    table.columns({
        {"node", &NodeRow::index, "number of the node", "", No, None},
        {"parent", [](auto& r) { return when(r.it().parent != kNoRow, r.it().parent); },
         "number of its parent", "", No, None},
        {"depth", [](auto& r) { return r.it().depth; }, "number of nodes above it", "", No, None},
    });
    table.columns(time_columns());
    table.columns({{"name", [](auto& r) { return r.it().name; }, "name of the ranges", "name", Call}});
    table.columns(place_columns());
    return table;
}

}  // namespace
}  // namespace tree_columns

Result tree_result(const Trace& trace, const CallTree& tree) {
    using namespace tree_columns;
    auto totals = totals_table();
    totals.add(tree);
    auto nodes = nodes_table("tree", "Ranges with the same names from the root down, parents first");
    for (std::uint32_t i = 0; i < tree.nodes.size(); ++i) nodes.add({trace, tree, i});
    return made_result(trace, totals, nodes);
}

Result hot_path_result(const Trace& trace, const CallTree& tree, std::size_t count) {
    using namespace tree_columns;
    auto totals = totals_table();
    totals.add(tree);
    auto path = nodes_table("hot_path", "The path to the heaviest callee at each level");

    ResultRows<NodeRow> heaviest("heaviest", "The paths with the most self time");
    heaviest.columns(time_columns());
    heaviest.columns({{"path", &NodeRow::path, "names from the root down", "path", Call}});
    heaviest.columns(place_columns());
    if (!tree.nodes.empty()) {
        for (const std::uint32_t node : hot_path(tree)) path.add({trace, tree, node});
        for (const std::uint32_t node : heaviest_nodes(tree, count)) heaviest.add({trace, tree, node});
    }
    return made_result(trace, totals, path, heaviest);
}

}  // namespace marey
