// utf8.h: bytes of any kind as UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace marey {

/// What stands for bytes that are no UTF-8: U+FFFD, once for each maximal broken part.
inline constexpr std::string_view kUtf8Replacement = "\xEF\xBF\xBD";

/// Length of the UTF-8 character at the start of `text`; 0 when it is broken, and then `broken` is how many
/// bytes to skip (the maximal subpart, as Unicode recommends). `text` is not empty.
std::size_t utf8_length(std::string_view text, std::size_t& broken);

/// Appends `bytes` with what is no UTF-8 replaced.
void append_utf8(std::string& out, std::string_view bytes);

}  // namespace marey
