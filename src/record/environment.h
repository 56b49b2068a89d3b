// environment.h: environment variables other than MAREY. Read where MAREY is; docs/reference/environment.md
// lists them.
#pragma once

#include <string>

namespace marey {

/// The current value of a variable; "" when it is not set.
std::string environment_text(const char* name);

}  // namespace marey
