// terminal.cpp: the output stream: its width, whether it supports colour, and writing to it.
#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <marey/error.h>

#include "base/environment.h"
#include "cli/text_format.h"

namespace marey::cli {
namespace {

constexpr std::size_t kDefaultWidth = 80;

std::size_t terminal_width(int file) {
    winsize size{};
    if (::ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
    const long width = std::strtol(environment_text("COLUMNS").c_str(), nullptr, 10);
    return width > 0 ? static_cast<std::size_t>(width) : kDefaultWidth;
}

Terminal terminal_of(int file) {
    Terminal terminal;
    terminal.is_terminal = ::isatty(file) == 1;
    if (!terminal.is_terminal) return terminal;
    terminal.width = terminal_width(file);
    const std::string kind = environment_text("TERM");
    const bool has_escapes = !kind.empty() && kind != "dumb";
    terminal.colour = environment_text("NO_COLOR").empty() && has_escapes;
    terminal.progress = environment_text("CI").empty() && has_escapes;
    return terminal;
}

/// Returns 0 or errno.
int write_all(int file, std::string_view text) noexcept {
    while (!text.empty()) {
        const ssize_t written = ::write(file, text.data(), text.size());
        if (written < 0) {
            if (errno == EINTR) continue;
            return errno;
        }
        text.remove_prefix(static_cast<std::size_t>(written));
    }
    return 0;
}

}  // namespace

Terminal standard_output() {
    return terminal_of(STDOUT_FILENO);
}

Terminal standard_error() {
    return terminal_of(STDERR_FILENO);
}

std::string styled(const Terminal& terminal, Style style, std::string_view text) {
    if (!terminal.colour || style == Style::Plain || text.empty()) return std::string(text);
    const char* code = style == Style::Bold ? "\x1b[1m" : style == Style::Dim ? "\x1b[2m" : "\x1b[31m";
    std::string result = code;
    result += text;
    result += "\x1b[0m";
    return result;
}

void write_out(std::string_view text) {
    const int error = write_all(STDOUT_FILENO, text);
    if (error == 0) return;
    // Reached only if SIGPIPE is ignored; otherwise the signal has ended the process.
    if (error == EPIPE) ::_exit(128 + SIGPIPE);
    throw Error(std::string("standard output: ") + std::strerror(error));
}

void write_data(std::string_view text) {
    write_out(printable(text, "\n\t"));
}

void print_error(std::string_view text) noexcept {
    write_all(STDERR_FILENO, text);
}

}  // namespace marey::cli
