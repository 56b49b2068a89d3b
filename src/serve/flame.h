// flame.h: the tree of a flame graph, without the nodes that are too narrow to see.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <marey/call_tree.h>
#include <marey/stacks.h>

#include "json/json_writer.h"

namespace marey::serve {

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

/// The host's nodes of a call tree, or the device's if there are no others. The names refer to the tree.
std::vector<FlameNode> flame_nodes(const CallTree& tree, FlameValue value);
/// The nodes of folded stacks, with the names of the trace's sites instead of their form in stacks, which has
/// no spaces. The names refer to the stacks and the trace.
std::vector<FlameNode> flame_nodes(const std::vector<FoldedStack>& stacks, const Trace& trace);

/// Writes the nodes in pre-order, largest siblings first; siblings narrower than one of `pixels` become one
/// node without a name.
void write_flame(JsonWriter& json, const std::vector<FlameNode>& nodes, std::uint32_t pixels);

}  // namespace marey::serve
