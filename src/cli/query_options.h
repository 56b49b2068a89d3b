// query_options.h: the options that marey sql and marey ask share, passed on to the Python package.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/output_argument.h"

namespace marey::cli {

struct QueryOptions {
    std::string from;  ///< of the trace, as in CaptureArgument
    std::optional<std::uint64_t> session;
    std::string format;
    OutputArgument output;
    std::optional<std::uint64_t> timeout;
    bool skip_damaged = false;

    void declare(Options& options);
    /// Appends the given options as words of a command line. Throws marey::Error if the output, which must
    /// not be `input`, must not be written.
    void append_to(std::vector<std::string>& words, const std::string& input) const;
};

/// Appends "NAME=VALUE" unless the value is empty.
void append_option(std::vector<std::string>& words, const std::string& name, const std::string& value);

}  // namespace marey::cli
