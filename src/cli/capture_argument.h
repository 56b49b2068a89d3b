// capture_argument.h: the FILE, --from and --session that most verbs take, and loading what they name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <marey/trace.h>

#include "cli/command_line.h"

namespace marey::cli {

/// FILE and --from. Both must outlive the parsing.
void declare_file(Options& options, std::string& file, std::string& from);

struct CaptureArgument {
    std::string file;
    std::string from;  ///< the name of its format; empty: its content tells
    std::optional<std::uint64_t> session;

    void declare(Options& options);
    /// Shows progress. Throws marey::Error.
    Trace load() const;
};

/// "app" for "dir/app.marey": what names of files made from it start with (the folder is kept).
std::string without_suffix(const std::string& path);

}  // namespace marey::cli
