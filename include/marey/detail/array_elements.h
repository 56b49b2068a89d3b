// array_elements.h: elements of an operation's arrays, which a library passes to the execution trace only.
#pragma once

#include <string_view>

#include <marey/detail/export.h>
#include <marey/value.h>

namespace marey::detail {

/// Arrays are numbered from 0 in the order of the operation's inputs.
struct ArrayElements {
    std::string_view ranges;             ///< least and greatest element by number: {"0":[1,4]}; may be empty
    Span<const std::string_view> bytes;  ///< the elements by number; empty: not of this array
};

/// Sets the elements of the operation that begins next on this thread; null: there are none.
MAREY_API void offer_elements(const ArrayElements* elements) noexcept;

}  // namespace marey::detail
