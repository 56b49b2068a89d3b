// json_check.h: whether a text is JSON.
#pragma once

#include <string_view>

namespace kymo {

/// Whether `text` is one strict JSON value (RFC 8259, UTF-8, at most 512 levels) and nothing else but space
/// around it.
bool is_json(std::string_view text) noexcept;

}  // namespace kymo
