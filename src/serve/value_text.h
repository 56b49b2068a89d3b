// value_text.h: recorded values as text for people.
#pragma once

#include <string>
#include <string_view>

#include <marey/trace.h>

namespace marey::serve {

/// "12", "[8, 3]", "float32[8, 3] cuda:0", ...; long texts and lists are cut.
std::string value_text(const Trace& trace, const Argument& value);
const char* value_kind_name(ValueKind kind) noexcept;
const char* role_name(ArgumentRole role) noexcept;

}  // namespace marey::serve
