// output_argument.cpp: the options -o and --force of the verbs that write a file.
#include "cli/output_argument.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <marey/error.h>
#include <marey/export.h>

namespace marey::cli {
namespace {

namespace fs = std::filesystem;

bool is_there(const std::string& path) {
    std::error_code ignored;
    return fs::exists(fs::symlink_status(path, ignored));
}

}  // namespace

void OutputArgument::declare(Options& options, const std::string& help) {
    options.text(path, "-o,--output", "FILE", help);
    options.flag(force, "--force", "Replace the output file if it exists");
}

void OutputArgument::check(const std::function<std::vector<std::string>()>& inputs) const {
    if (is_standard_output()) return;
    const std::string target = output_target(path);
    if (target.empty() || !is_there(target)) return;
    for (const std::string& input : inputs()) {
        std::error_code ignored;
        if (fs::equivalent(input, target, ignored))
            throw Error(path + ": is the input file; choose another output with -o");
    }
    if (!force) throw Error(path + ": already exists (use --force to replace it)");
}

void OutputArgument::prepare_capture() const {
    if (output_target(path).empty()) throw Error(path + ": a capture must be a regular file");
    check([] { return std::vector<std::string>(); });
    // The name itself, not the file that a link leads to: the recorder does not follow links.
    if (is_there(path) && ::unlink(path.c_str()) != 0) throw Error(path + ": " + std::strerror(errno));
}

}  // namespace marey::cli
