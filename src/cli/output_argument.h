// output_argument.h: the options -o and --force of the verbs that write a file.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/command_line.h"

namespace marey::cli {

/// A file to write, and the rule for all of them: a file that exists is replaced only with --force, an input
/// never. A device or a pipe is written in place, and nothing is written through a link of another user.
struct OutputArgument {
    std::string path;  ///< as given, or chosen by the verb; empty or "-": standard output
    bool force = false;

    void declare(Options& options, const std::string& help);
    bool is_standard_output() const { return path.empty() || path == "-"; }
    /// Throws marey::Error if the file must not be written. `inputs` is called only if it exists.
    void check(const std::function<std::vector<std::string>()>& inputs) const;
    /// The same for a capture, which must be a regular file. Removes the file that it replaces.
    void prepare_capture() const;
};

}  // namespace marey::cli
