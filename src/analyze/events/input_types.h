// input_types.h: the type names of values in PyTorch's traces.
#pragma once

#include <marey/trace.h>

namespace marey {

/// A boolean, an integer, a double, or the text of another scalar; whether or not its value was recorded.
bool is_scalar(const Argument& value) noexcept;
/// A list of arrays, all present and all defined. PyTorch's traces omit any other list.
bool is_array_list(const Trace& trace, const Argument& value) noexcept;
/// "float", "Scalar", "TensorList", ...; empty for values without a type name.
std::string_view input_type_text(const Trace& trace, const Argument& value) noexcept;

}  // namespace marey
