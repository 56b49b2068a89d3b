// range_text.h: the text that tools get for a range.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <marey/observe.h>
#include <marey/value.h>

namespace marey {

/// The range that made an array, and which of its outputs that was.
struct Producer {
    std::uint64_t range = 0;  ///< 0: unknown
    std::int32_t output = -1;
    friend bool operator==(const Producer&, const Producer&) = default;
};

/// The arrays of a value, lists opened, in their order; what is none or holds none gives one null.
std::vector<const ArrayView*> arrays_of(std::span<const Value> values);

/// "name, seq = 5, op_id = 7, sizes = [[2, 3], []], input_op_ids = [(3,0), (0,-1)]": each part where there is
/// something to say. `arrays` are those of the inputs; `producers` one for each, or none.
std::string range_text(const ObservedRange& range, std::span<const ArrayView* const> arrays,
                       std::span<const Producer> producers);

}  // namespace marey
