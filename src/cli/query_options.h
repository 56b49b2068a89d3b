// query_options.h: the options that marey sql and marey ask share; the Python package runs both.
#pragma once

#include <optional>

#include <marey/error.h>

#include "cli/capture_argument.h"
#include "cli/output_argument.h"
#include "cli/verb.h"

namespace marey::cli {

struct QueryOptions {
    std::string path, from, format;
    std::optional<std::uint64_t> session, timeout;
    OutputArgument output;
    bool skip_damaged = false, json = false, csv = false;

    void declare(Options& options) {
        declare_from(options, from);
        declare_session(options, session);
        options.choice(format, "--format", {"table", "csv", "json", "markdown", "parquet"},
                       "Output format (table; with -o from its suffix)");
        options.flag(json, "--json", "Same as --format json");
        options.flag(csv, "--csv", "Same as --format csv");
        output.declare(options, "Output file (standard output)");
        options.number(timeout, "--timeout", "Stop after N seconds (never)");
        options.flag(skip_damaged, "--skip-damaged", "Leave out damaged files of a lake instead of failing");
    }
    /// Throws marey::Error if the output must not be written.
    int run() const {
        if (json + csv + !format.empty() > 1)
            throw Error("--format, --json and --csv are mutually exclusive");
        output.check([&] { return std::vector{path}; });
        return kRunInPython;
    }
};

}  // namespace marey::cli
