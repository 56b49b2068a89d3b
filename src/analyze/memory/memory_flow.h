// memory_flow.h: the steps in which operators pass on arrays.
#pragma once

#include <marey/event_list.h>
#include <marey/memory_profile.h>

namespace marey {

/// Whether this is the name of an operator with a schema: "aten::add", not "autograd::engine::x: y".
bool is_operator_name(std::string_view name) noexcept;

/// In time order. Sets `versions` of the blocks to the number of versions the steps create.
std::vector<FlowNode> memory_flow(const EventTree& tree, const ArrayIds& ids,
                                  std::vector<MemoryBlock>& blocks);

}  // namespace marey
