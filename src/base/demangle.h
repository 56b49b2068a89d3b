// demangle.h: C++ symbols as people read them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace marey {

/// The readable form of a mangled C++ name ("_Z..."), or nothing where `symbol` is none, is damaged, or is
/// made so that its readable form could be endless: one that refers to its own parts more than 32 times stays
/// as it is. Names of Rust ("_R...") stay as they are, too.
std::optional<std::string> demangle(std::string_view symbol);

}  // namespace marey
