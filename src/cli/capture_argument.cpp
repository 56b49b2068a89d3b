// capture_argument.cpp: the arguments FILE, --from and --session that most verbs take, and loading the file.
#include "cli/capture_argument.h"

#include <string_view>
#include <utility>

#include <marey/error.h>
#include <marey/import.h>
#include <marey/range_filter.h>

#include "cli/progress.h"

namespace marey::cli {

void declare_file(Options& options, std::string& file, std::string& from) {
    options.required(file, "FILE", "Marey capture, or a trace written by another tool");
    std::vector<std::string> names;
    for (const ImportFormat& format : import_formats()) names.emplace_back(format.name);
    options.choice(from, "--from", names, "Format of FILE (detected from its content)");
}

void CaptureArgument::declare(Options& options) {
    declare_file(options, file, from);
    options.number(session, "--session", "Session to show if the capture has several (see marey info)");
}

void CaptureArgument::declare_filter(Options& options) {
    options.texts(exclude, "--exclude", "PATTERN",
                  "Leave out ranges whose name, function or file matches; repeatable");
    options.flag(show_importlib, "--show-importlib", "Show the frames of importlib in Python imports");
}

Trace CaptureArgument::load() const {
    const Progress progress("reading " + file);
    if (!session) return open_trace(file, from);
    const ImportFormat* const detected = from.empty() ? import_format(file) : nullptr;
    const std::string_view format = detected != nullptr ? detected->name : std::string_view(from);
    if (!format.empty() && format != import_formats().front().name)
        throw Error(file + ": --session applies only to Marey captures, and this file has the format " +
                    std::string(format));
    return Trace::load(file, *session);
}

Trace CaptureArgument::filtered(Trace trace) const {
    return filter_ranges(std::move(trace), {.exclude = exclude, .fold_imports = !show_importlib});
}

std::string without_suffix(const std::string& path) {
    constexpr std::string_view kSuffix = ".marey";
    if (path.size() > kSuffix.size() && path.ends_with(kSuffix))
        return path.substr(0, path.size() - kSuffix.size());
    return path;
}

}  // namespace marey::cli
