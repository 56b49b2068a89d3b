// capture_argument.h: the arguments FILE, --from and --session that most verbs take, and loading the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <marey/trace.h>

#include "cli/command_line.h"

namespace marey::cli {

/// Declares FILE and --from. Both variables must outlive the parsing.
void declare_file(Options& options, std::string& file, std::string& from);

struct CaptureArgument {
    std::string file;
    std::string from;  ///< the name of its format; empty: detected from its content
    std::optional<std::uint64_t> session;

    void declare(Options& options);
    /// Reads the file and shows progress. Throws marey::Error.
    Trace load() const;
};

/// `path` without ".marey" ("dir/app" for "dir/app.marey"): the start of the names of files made from it.
std::string without_suffix(const std::string& path);

}  // namespace marey::cli
