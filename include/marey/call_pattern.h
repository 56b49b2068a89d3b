// call_pattern.h: whether a text is a pattern that calls of Python can be included or excluded by.
#pragma once

#include <cstddef>
#include <string_view>

#include <marey/detail/export.h>

namespace marey {

/// Why a text is no pattern (SessionOptions::calls); null: it is one.
MAREY_API const char* call_pattern_error(std::string_view text) noexcept;

namespace detail {

/// Where the set of characters that begins at `at` with a '[' ends; npos: it does not.
MAREY_API std::size_t end_of_pattern_set(std::string_view text, std::size_t at) noexcept;

}  // namespace detail
}  // namespace marey
