// environment.h: reads environment variables, except in set-uid programs. Nothing else in src/ may read them.
#pragma once

#include <stdlib.h>

#include <string>

namespace marey {

/// The current value of a variable; "" when it is not set. Also "" in a program that has more privileges than
/// its user (set-uid, set-gid, file capabilities), because the variables choose files to create and libraries
/// to load.
inline std::string environment_text(const char* name) {
    const char* const text = ::secure_getenv(name);
    return text != nullptr ? text : "";
}

}  // namespace marey
