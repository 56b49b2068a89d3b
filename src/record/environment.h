// environment.h: what the environment says beyond KYMO. Read where KYMO is, listed in docs/environment.md.
#pragma once

#include <string>

namespace kymo {

/// The value of a variable, now; "" when it is not set.
std::string environment_text(const char* name);

}  // namespace kymo
