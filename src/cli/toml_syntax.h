// toml_syntax.h: finds syntax errors in TOML files.
#pragma once

#include <string>
#include <string_view>

namespace marey::cli {

/// The first syntax error in a TOML document ("line 3: expected '=' after the key"); empty if there is none.
/// CLI11 reads such files without a word. Numbers and dates are checked only roughly, and keys that are
/// defined twice are not found.
std::string toml_syntax_error(std::string_view text);

}  // namespace marey::cli
