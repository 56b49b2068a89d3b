// browser.cpp: shows traces in the browser until the user ends the command.
#include "cli/browser.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include <marey/error.h>
#include <marey/import.h>
#include <marey/live.h>
#include <marey/load.h>
#include <marey/merge.h>
#include <marey/range_filter.h>

#include "base/environment.h"
#include "cli/terminal.h"
#include "cli/text_format.h"

namespace marey::cli {
namespace {

/// Starts a browser without waiting for it. Returns whether that succeeded.
bool start_browser(std::string address) {
    std::string program = environment_text("BROWSER");
    if (program.empty()) {
        if (environment_text("DISPLAY").empty() && environment_text("WAYLAND_DISPLAY").empty()) return false;
        program = "xdg-open";
    }
    char* const words[] = {program.data(), address.data(), nullptr};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    if (::posix_spawn_file_actions_init(&actions) != 0) return false;
    if (::posix_spawnattr_init(&attributes) != 0) {
        ::posix_spawn_file_actions_destroy(&actions);
        return false;
    }
    for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        ::posix_spawn_file_actions_addopen(&actions, file, "/dev/null", O_RDWR, 0);
    sigset_t none;  // this process waits for blocked signals; the browser must not inherit that
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    pid_t child = 0;
    const int error = ::posix_spawnp(&child, program.c_str(), &actions, &attributes, words, environ);
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
    return error == 0;
}

std::string host_name() {
    std::array<char, 256> name{};
    return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "HOST";
}

/// Reads the newest part of captures that are being written.
std::function<Trace(std::int64_t)> last_of(const std::vector<std::string>& captures) {
    return [captures](std::int64_t last_ns) {
        std::vector<Trace> parts(captures.size());
        std::ranges::transform(captures, parts.begin(), [last_ns](const std::string& capture) {
            return load_newest(capture, {.log_bytes = 0, .last_ns = last_ns});
        });
        return parts.size() == 1 ? parts.front() : merge_traces(parts);
    };
}

}  // namespace

ViewSource file_source(const std::string& file, const std::string& format, bool uses_cache) {
    const FileFormat* const found = format.empty() ? detect_format(file) : nullptr;
    if (format.empty() && found == nullptr)  // before the browser opens
        open_trace(file, format);            // throws, with the known formats
    const bool is_capture = format == "marey" || (found != nullptr && found->name == "marey");
    const auto progress = std::make_shared<LoadProgress>();
    const auto cache = uses_cache ? std::make_shared<TraceCache>(file, format) : nullptr;
    return {.name = file,
            .load =
                [=] {
                    try {
                        if (cache != nullptr) {
                            if (const std::optional<Trace> kept = cache->find()) return *kept;
                        }
                        // Before it is kept: the cache shares the tables, and shared tables are copied to be
                        // changed.
                        Trace trace =
                            filter_ranges(is_capture ? load_trace(file, *progress) : open_trace(file, format),
                                          {.fold_imports = true});
                        if (cache != nullptr) cache->keep(trace);
                        return trace;
                    } catch (const Error& error) {
                        print_error(fmt::format("marey: {}\n", printable(error.what())));
                        throw;
                    }
                },
            .progress = progress,
            .folds_imports = false,
            .load_last = is_capture ? last_of({file}) : nullptr};
}

ViewSource merged_source(const std::vector<std::string>& captures) {
    return {.name = captures.front(),
            .load = [captures] { return load_merged(captures).trace; },
            .load_last = last_of(captures)};
}

void show_in_browser(std::vector<ViewSource> sources, const ViewOptions& options, bool opens_browser) {
    sigset_t ends;
    ::sigemptyset(&ends);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&ends, signal);
    ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);  // before the viewer's threads start: they inherit it
    const std::unique_ptr<Viewer> view = open_view(std::move(sources), options);
    std::string text = view->url() + "\n";
    const bool has_browser = opens_browser && start_browser(view->url());
    if (opens_browser && !has_browser) print_error("marey: no browser found: open the address yourself\n");
    if (!has_browser)
        text +=
            fmt::format("From another machine: ssh -L {0}:127.0.0.1:{0} {1}\n", view->port(), host_name());
    write_out(text + "Press Ctrl-C to stop.\n");
    int signal = 0;
    ::sigwait(&ends, &signal);
}

}  // namespace marey::cli
