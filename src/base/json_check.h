// json_check.h: whether a text is JSON.
#pragma once

#include <string_view>

namespace kymo {

/// True for one whole JSON value (RFC 8259) in UTF-8, not nested deeper than 256.
bool is_json(std::string_view text) noexcept;

}  // namespace kymo
