// call_pattern.h: checks patterns that include or exclude Python calls.
#pragma once

#include <cstddef>
#include <string_view>

#include <marey/detail/export.h>

namespace marey {

/// Checks a pattern (see SessionOptions::calls). Returns null if it is valid, otherwise what is wrong with
/// it.
MAREY_API const char* call_pattern_error(std::string_view text) noexcept;

namespace detail {

/// The end of the character set that begins with the '[' at `at`; npos if it is not closed.
MAREY_API std::size_t end_of_pattern_set(std::string_view text, std::size_t at) noexcept;

}  // namespace detail
}  // namespace marey
