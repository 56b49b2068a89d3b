// demangle.h: readable names of C++ symbols.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace marey {

/// The readable form of a mangled C++ name ("_Z..."), or nothing if `symbol` is not one, is damaged, or could
/// expand without limit: a name that refers to its own parts more than 32 times is left alone. Rust names
/// ("_R...") are left alone, too.
std::optional<std::string> demangle(std::string_view symbol);

}  // namespace marey
