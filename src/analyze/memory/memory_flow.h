// memory_flow.h: the arrays that ranges use, and the steps in which operators pass them on.
#pragma once

#include <algorithm>

#include <marey/event_list.h>
#include <marey/memory_profile.h>
#include <marey/trace.h>

namespace marey {

/// Whether this is the name of an operator with a schema: "aten::add", not "autograd::engine::x: y".
bool is_operator_name(std::string_view name) noexcept;

/// In time order. Sets `versions` of the blocks to the number of versions the steps create.
std::vector<FlowNode> memory_flow(const EventTree& tree, const ArrayIds& ids,
                                  std::vector<MemoryBlock>& blocks);

/// Calls `visit(row of Trace::arrays())` for each array, in order, including those in lists.
template <class Visit>
void visit_arrays(const Trace& trace, const Argument& value, const Visit& visit, int nesting = 0) {
    constexpr int kMaxDepth = 16;  // a damaged trace could hold a cycle
    if (value.kind == ValueKind::Array && value.array < trace.arrays().size()) {
        visit(value.array);
    } else if (value.kind == ValueKind::List && nesting < kMaxDepth) {
        const std::span<const Argument> items = trace.list_items();
        const std::size_t first = std::min<std::size_t>(value.list.first, items.size());
        const std::size_t count = std::min<std::size_t>(value.list.count, items.size() - first);
        for (const Argument& item : items.subspan(first, count))
            visit_arrays(trace, item, visit, nesting + 1);
    }
}

/// Visits the arrays among the inputs of a range.
template <class Visit>
void visit_inputs(const Trace& trace, Row range, const Visit& visit) {
    for (const Argument& value : trace.range_arguments(range)) {
        if (value.role == ArgumentRole::Input) visit_arrays(trace, value, visit);
    }
}

}  // namespace marey
