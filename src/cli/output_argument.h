// output_argument.h: the options -o and --force of the verbs that write a file.
#pragma once

#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>

#include <marey/error.h>
#include <marey/export.h>

#include "cli/command_line.h"

namespace marey::cli {

/// A file to write, and the rule for all of them: a file that exists is replaced only with --force, an input
/// never. A device or a pipe is written in place, and nothing is written through a link of another user.
struct OutputArgument {
    std::string path;  ///< as given, or chosen by the verb; empty or "-": standard output
    bool force = false;

    void declare(Options& options, const std::string& help) {
        options.text(path, "-o,--output", "FILE", help);
        options.flag(force, "--force", "Replace the output file if it exists");
    }
    bool is_standard_output() const { return path.empty() || path == "-"; }
    /// Throws marey::Error if the file must not be written. `inputs` is called only if it exists.
    void check(const std::function<std::vector<std::string>()>& inputs) const {
        if (is_standard_output()) return;
        const std::string target = output_target(path);
        if (target.empty() || !is_there(target)) return;
        for (const std::string& input : inputs()) {
            std::error_code ignored;
            if (std::filesystem::equivalent(input, target, ignored))
                throw Error(path + ": is the input file; choose another output with -o");
        }
        if (!force) throw Error(path + ": already exists (use --force to replace it)");
    }
    /// The same for a capture, which must be a regular file. Removes the file that it replaces.
    void prepare_capture() const {
        if (output_target(path).empty()) throw Error(path + ": a capture must be a regular file");
        check([] { return std::vector<std::string>(); });
        // The name itself, not the file that a link leads to: the recorder does not follow links.
        if (is_there(path) && ::unlink(path.c_str()) != 0) throw Error(path + ": " + std::strerror(errno));
    }

  private:
    static bool is_there(const std::string& path) {
        std::error_code ignored;
        return std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
    }
};

}  // namespace marey::cli
