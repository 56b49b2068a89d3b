// range_text.h: the text of a range for other tools.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <marey/observe.h>
#include <marey/value.h>

namespace marey {

/// The range that produced an array, and the index of that output.
struct Producer {
    std::uint64_t range = 0;  ///< 0: unknown
    std::int32_t output = -1;
    friend bool operator==(const Producer&, const Producer&) = default;
};

/// The arrays in the values, in order, with lists flattened. A value without arrays gives one null.
std::vector<const ArrayView*> arrays_of(std::span<const Value> values);

/// "name, seq = 5, op_id = 7, sizes = [[2, 3], []], input_op_ids = [(3,0), (0,-1)]". Unknown parts are left
/// out. `arrays` are those of the inputs; `producers` has one entry for each, or is empty.
std::string range_text(const ObservedRange& range, std::span<const ArrayView* const> arrays,
                       std::span<const Producer> producers);

}  // namespace marey
