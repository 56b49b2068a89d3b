// file_defaults.h: defaults of options, from [tool.marey.VERB] in pyproject.toml and [VERB] in
// ~/.config/marey.toml.
#pragma once

namespace CLI {
class App;
}

namespace marey::cli {

/// Sets the options of a verb that were not given on the command line. The nearest pyproject.toml, in the
/// current folder or above it, comes before the user's own file. Throws marey::Error, with the file, for
/// unknown options and invalid values, and for options that choose files to write.
void set_file_defaults(CLI::App& verb);

}  // namespace marey::cli
