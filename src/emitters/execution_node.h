// execution_node.h: the JSON of one node of an execution trace.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <marey/observe.h>
#include <marey/value.h>

namespace marey {

/// Identifies an array: one number for its memory, one for this view of it.
struct ArrayKey {
    std::uint64_t array = 0;
    std::uint64_t storage = 0;
};

inline constexpr std::string_view kProcessNode = "[pytorch|profiler|execution_trace|process]";
inline constexpr std::string_view kThreadNode = "[pytorch|profiler|execution_trace|thread]";

/// The properties of a node other than its inputs and outputs.
struct NodeProperties {
    std::uint64_t id = 0;
    std::string_view name;
    std::uint64_t parent = 0;
    std::uint64_t range = 0;           ///< the range's id
    std::uint64_t forward_parent = 0;  ///< for a backward range; 0: none
    std::int64_t sequence = -1;
    Scope scope = Scope::User;
    std::uint32_t thread = 0;
    std::uint32_t forward_thread = 0;
};

/// {"values": [...], "shapes": [...], "types": [...], "strides": [...]}, the four of the same length. `ids`
/// are those of the arrays, in the order in which array_list() gives them.
std::string values_json(std::span<const Value> values, std::span<const ArrayKey> ids);
/// All arrays in `values` that values_json() writes, including those in lists.
std::vector<const ArrayView*> array_list(std::span<const Value> values);
/// The attributes, including those in `keywords`: known ones have a fixed position, others follow.
std::string attributes_json(const NodeProperties& facts, std::span<const KeyedValue> keywords);
/// The node, assembled from its parts.
std::string node_json(const NodeProperties& facts, std::string_view inputs, std::string_view outputs,
                      std::string_view attributes);

}  // namespace marey
