// environment.h: what the environment says beyond MAREY. Read where MAREY is, listed in docs/reference/environment.md.
#pragma once

#include <string>

namespace marey {

/// The value of a variable, now; "" when it is not set.
std::string environment_text(const char* name);

}  // namespace marey
