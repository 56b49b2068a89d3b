// capture_argument.h: the FILE, --from and --session that most verbs take, and loading what they name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <kymo/trace.h>

#include "cli/command_line.h"

namespace kymo::cli {

/// FILE and --from. Both must outlive the parsing.
void declare_file(Options& options, std::string& file, std::string& from);

struct CaptureArgument {
    std::string file;
    std::string from;  ///< the name of its format; empty: its content tells
    std::optional<std::uint64_t> session;

    void declare(Options& options);
    /// Shows progress. Throws kymo::Error.
    Trace load() const;
};

/// "app" for "dir/app.kymo": what names of files made from it start with (the folder is kept).
std::string without_suffix(const std::string& path);

}  // namespace kymo::cli
