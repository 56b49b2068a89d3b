// chrome_types.h: the words that PyTorch's traces have for the types of values.
#pragma once

#include <string_view>

#include <marey/trace.h>

namespace marey {

/// A boolean, an integer, a double, or the text of another scalar; whether or not its value was asked for.
bool is_scalar(const Argument& value) noexcept;
/// A list of arrays, all there and all defined. Of any other one PyTorch's tools are told nothing.
bool is_array_list(const Trace& trace, const Argument& value) noexcept;
/// "float", "Scalar", "TensorList", ...; empty for what has no word.
std::string_view input_type_text(const Trace& trace, const Argument& value) noexcept;

}  // namespace marey
