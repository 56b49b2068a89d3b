// enum_names.h: the names of an enumeration's values, in a table by number.
#pragma once

#include <cstddef>

namespace marey {

template <class Number, std::size_t kCount>
constexpr const char* name_at(const char* const (&names)[kCount], Number number,
                              const char* otherwise = "unknown") noexcept {
    const auto index = static_cast<std::size_t>(number);
    return index < kCount ? names[index] : otherwise;
}

}  // namespace marey
