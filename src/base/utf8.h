// utf8.h: converts arbitrary bytes to UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace marey {

/// Replaces bytes that are not UTF-8: U+FFFD, once for each maximal broken part.
inline constexpr std::string_view kUtf8Replacement = "\xEF\xBF\xBD";

/// Length of the UTF-8 character at the start of `text`; 0 when it is broken, and then `broken` is how many
/// bytes to skip (the maximal subpart, as Unicode recommends). `text` is not empty.
std::size_t utf8_length(std::string_view text, std::size_t& broken);

/// Appends `bytes` with invalid UTF-8 replaced.
void append_utf8(std::string& out, std::string_view bytes);

/// Writes one code point as UTF-8, up to four bytes, and returns their number.
std::size_t encode_utf8(std::uint32_t code, char* to) noexcept;

/// Appends one code point as UTF-8.
void append_code_point(std::string& out, std::uint32_t code);

}  // namespace marey
