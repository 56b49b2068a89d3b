// memory_flow.h: the arrays that ranges use, and the steps in which operators pass them on.
#pragma once

#include <marey/event_list.h>
#include <marey/memory_profile.h>
#include <marey/trace.h>

#include "trace/trace_data.h"

namespace marey {

/// Whether this is the name of an operator with a schema: "aten::add", not "autograd::engine::x: y".
bool is_operator_name(std::string_view name) noexcept;

/// In time order. Sets `versions` of the blocks to the number of versions the steps create.
std::vector<FlowNode> memory_flow(const EventTree& tree, const ArrayIds& ids,
                                  std::vector<MemoryBlock>& blocks);

/// Calls `visit(row of Trace::arrays())` for each array, in order, including those in lists.
void visit_arrays(const Trace& trace, const Argument& value, const auto& visit, int nesting = 0) {
    constexpr int kMaxDepth = 16;  // a damaged trace could hold a cycle
    if (array_of(trace, value) != nullptr) visit(value.array);
    if (nesting == kMaxDepth) return;
    for (const Argument& item : items_of(trace, value)) visit_arrays(trace, item, visit, nesting + 1);
}

/// Visits the arrays among the inputs of a range.
void visit_inputs(const Trace& trace, Row range, const auto& visit) {
    for (const Argument& value : trace.range_arguments(range)) {
        if (value.role == ArgumentRole::Input) visit_arrays(trace, value, visit);
    }
}

}  // namespace marey
