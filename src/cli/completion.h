// completion.h: shell scripts that complete the command line, made from the command's own table of verbs and
// options.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace marey::cli {

inline constexpr const char* kShells[] = {"bash", "zsh", "fish"};

/// `shell` is one of kShells.
std::string completion_script(const CLI::App& command, const std::string& shell);

}  // namespace marey::cli
