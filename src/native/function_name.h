// function_name.h: readable names of functions, from signatures as compilers print them and from symbols.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace marey {

/// Takes the name out of __PRETTY_FUNCTION__ (GCC or Clang): "int ns::A::get(int) const" becomes
/// "ns::A::get", "T max(T, T) [with T = int]" becomes "max<int>", a lambda becomes "main::<lambda>". Unnamed
/// namespaces are left out. A text that is not a signature is returned unchanged.
std::string function_name(std::string_view signature);

/// The readable form of a mangled C++ name ("_Z..."), or nothing if `symbol` is not one, is damaged, or could
/// expand without limit: a name that refers to its own parts more than 32 times is left alone. Rust names
/// ("_R...") are left alone, too.
std::optional<std::string> demangle(std::string_view symbol);

}  // namespace marey
