// open_trace.cpp: shows a capture in a browser.
#include "cli/open_trace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include <marey/export.h>
#include <marey/range_filter.h>

#include "base/environment.h"
#include "cli/capture_argument.h"
#include "cli/terminal.h"
#include "cli/text_format.h"

namespace marey::cli {
namespace {

constexpr const char* kViewer = "https://ui.perfetto.dev";

/// Starts a browser without waiting for it. Returns whether that succeeded.
bool start_browser() {
    std::string program = environment_text("BROWSER");
    if (program.empty()) {
        if (environment_text("DISPLAY").empty() && environment_text("WAYLAND_DISPLAY").empty()) return false;
        program = "xdg-open";
    }
    std::string address = kViewer;
    char* const words[] = {program.data(), address.data(), nullptr};
    posix_spawn_file_actions_t actions;
    if (::posix_spawn_file_actions_init(&actions) != 0) return false;
    for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        ::posix_spawn_file_actions_addopen(&actions, file, "/dev/null", O_RDWR, 0);
    pid_t child = 0;
    const int error = ::posix_spawnp(&child, program.c_str(), &actions, nullptr, words, environ);
    ::posix_spawn_file_actions_destroy(&actions);
    return error == 0;
}

/// A file name that does not exist yet.
std::string free_name(const std::string& stem, const std::string& suffix) {
    std::string name = stem + suffix;
    for (int i = 2; ::access(name.c_str(), F_OK) == 0; ++i) name = stem + "-" + std::to_string(i) + suffix;
    return name;
}

}  // namespace

void open_in_browser(const std::string& capture) {
    const std::string file = free_name(without_suffix(capture), can_write_perfetto() ? ".pftrace" : ".json");
    const Trace trace = filter_ranges(Trace::load(capture), {.fold_imports = true});
    can_write_perfetto() ? write_perfetto(trace, file) : write_chrome_json(trace, file, ChromeStyle::Viewer);
    if (start_browser()) {
        print_error(fmt::format("marey: opening {}: drop {} into the page\n", kViewer, shell_word(file)));
    } else {
        print_error(fmt::format("marey: no browser found: open {} at {}\n", shell_word(file), kViewer));
    }
}

}  // namespace marey::cli
