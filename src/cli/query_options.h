// query_options.h: the options that marey sql and marey ask share; the Python package runs both.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/capture_argument.h"
#include "cli/output_argument.h"
#include "cli/verb.h"

namespace marey::cli {

struct QueryOptions {
    std::string path, from, format;
    std::optional<std::uint64_t> session, timeout;
    OutputArgument output;
    bool skip_damaged = false;

    void declare(Options& options) {
        declare_from(options, from);
        declare_session(options, session);
        options.choice(format, "--format", {"table", "csv", "json", "markdown", "parquet"},
                       "Output format (table; with -o from its suffix)");
        output.declare(options, "Output file (standard output)");
        options.number(timeout, "--timeout", "Stop after N seconds (never)");
        options.flag(skip_damaged, "--skip-damaged", "Leave out damaged files of a lake instead of failing");
    }
    /// Throws marey::Error if the output must not be written.
    int run() const {
        output.check([&] { return std::vector{path}; });
        return kRunInPython;
    }
};

}  // namespace marey::cli
