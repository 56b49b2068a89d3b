// capture_argument.cpp: the FILE and --session that most verbs take, and loading what they name.
#include "cli/capture_argument.h"

#include <string_view>

#include <kymo/import.h>

#include "cli/progress.h"

namespace kymo::cli {

void CaptureArgument::declare(Options& options) {
    options.required(file, "FILE", "The capture, or a trace of another tool");
    options.number(session, "--session",
                   "The session to show, where the capture holds several (see kymo info)");
}

Trace CaptureArgument::load() const {
    const Progress progress("reading " + file);
    return session ? Trace::load(file, *session) : open_trace(file);
}

std::string without_suffix(const std::string& path) {
    constexpr std::string_view kSuffix = ".kymo";
    if (path.size() > kSuffix.size() && path.ends_with(kSuffix))
        return path.substr(0, path.size() - kSuffix.size());
    return path;
}

}  // namespace kymo::cli
