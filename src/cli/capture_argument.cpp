// capture_argument.cpp: the arguments FILE, --from and --session that most verbs take, and loading the file.
#include "cli/capture_argument.h"

#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include <marey/error.h>
#include <marey/import.h>
#include <marey/range_filter.h>
#include <marey/selection.h>

#include "cli/progress.h"
#include "cli/text_format.h"

namespace marey::cli {

namespace {

constexpr const char* kFileHelp = "Marey capture, or a trace written by another tool";

}  // namespace

void declare_from(Options& options, std::string& from) {
    std::vector<std::string> names;
    for (const ImportFormat& format : import_formats()) names.emplace_back(format.name);
    options.choice(from, "--from", names, "Format of FILE (detected from its content)");
}

std::int64_t parsed_time(const char* option, const std::string& text) {
    const auto time = parse_duration(text);
    if (!time || *time > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() / 2))
        throw Error(std::string("invalid time '") + text + "' for " + option +
                    ": expected a number with a unit (ns, us, ms or s)");
    return static_cast<std::int64_t>(*time);
}

void declare_file(Options& options, std::string& file, std::string& from) {
    options.required(file, "FILE", kFileHelp);
    declare_from(options, from);
}

void declare_files(Options& options, std::vector<std::string>& files, std::string& from) {
    options.required(files, "FILE", kFileHelp);
    declare_from(options, from);
}

void declare_session(Options& options, std::optional<std::uint64_t>& session) {
    options.number(session, "--session", "Session to show if the capture has several (see marey info)");
}

void CaptureArgument::declare(Options& options) {
    declare_file(options, file, from);
    declare_session(options, session);
}

void CaptureArgument::declare_filter(Options& options) {
    options.text(begin, "--begin", "TIME", "Leave out what was before, such as 1.5s since the start");
    options.text(end, "--end", "TIME", "Leave out what was after, such as 1.6s since the start");
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
    trace = filter_ranges(std::move(trace), {.exclude = exclude, .fold_imports = !show_importlib});
    if (begin.empty() && end.empty()) return trace;
    const WindowInfo& window = trace.window();
    Selection selection;
    selection.begin_ns = window.start_ns + (begin.empty() ? 0 : parsed_time("--begin", begin));
    selection.end_ns = end.empty() ? window.end_ns : window.start_ns + parsed_time("--end", end);
    if (selection.end_ns < selection.begin_ns) throw Error("--end " + end + " is before --begin " + begin);
    return select_ranges(trace, selection);
}

std::string without_suffix(const std::string& path) {
    constexpr std::string_view kSuffix = ".marey";
    if (path.size() > kSuffix.size() && path.ends_with(kSuffix))
        return path.substr(0, path.size() - kSuffix.size());
    return path;
}

}  // namespace marey::cli
