// function_name.h: the qualified name in a function's signature as compilers print it.
#pragma once

#include <string>
#include <string_view>

namespace marey {

/// Takes the name out of __PRETTY_FUNCTION__ (GCC or Clang): "int ns::A::get(int) const" becomes
/// "ns::A::get", "T max(T, T) [with T = int]" becomes "max<int>", a lambda becomes "main::<lambda>". Unnamed
/// namespaces are left out. A text that is not a signature is returned unchanged.
std::string function_name(std::string_view signature);

}  // namespace marey
