// query_options.cpp: the options that marey sql and marey ask share, passed on to the Python package.
#include "cli/query_options.h"

#include "cli/capture_argument.h"

namespace marey::cli {

void append_option(std::vector<std::string>& words, const std::string& name, const std::string& value) {
    if (!value.empty()) words.push_back(name + "=" + value);
}

void QueryOptions::declare(Options& options) {
    declare_from(options, from);
    declare_session(options, session);
    options.choice(format, "--format", {"table", "csv", "json", "markdown", "parquet"},
                   "Output format (table; with -o from its suffix)");
    output.declare(options, "Output file (standard output)");
    options.number(timeout, "--timeout", "Stop after N seconds (never)");
    options.flag(skip_damaged, "--skip-damaged", "Leave out damaged files of a lake instead of failing");
}

void QueryOptions::append_to(std::vector<std::string>& words, const std::string& input) const {
    output.check([&] { return std::vector{input}; });
    append_option(words, "--from", from);
    if (session) append_option(words, "--session", std::to_string(*session));
    append_option(words, "--format", format);
    append_option(words, "--output", output.path);
    if (timeout) append_option(words, "--timeout", std::to_string(*timeout));
    if (skip_damaged) words.emplace_back("--skip-damaged");
}

}  // namespace marey::cli
