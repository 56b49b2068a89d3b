// memory_flow.h: the steps in which operators pass arrays on.
#pragma once

#include <string_view>
#include <vector>

#include <marey/event_list.h>
#include <marey/memory_profile.h>

namespace marey {

/// Whether a name is that of an operator, which has a schema: "aten::add", not "autograd::engine::x: y".
bool is_operator_name(std::string_view name) noexcept;

/// In order of time. Fills in `versions` of the blocks, which the steps count.
std::vector<FlowNode> memory_flow(const EventTree& tree, const ArrayIds& ids,
                                  std::vector<MemoryBlock>& blocks);

}  // namespace marey
