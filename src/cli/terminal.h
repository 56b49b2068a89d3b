// terminal.h: the output stream: its width, whether it supports colour, and writing to it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace marey::cli {

struct Terminal {
    bool is_terminal = false;
    bool progress = false;  ///< a terminal on which a line can be erased, and CI is not set
    bool colour = false;    ///< a terminal, NO_COLOR is not set, TERM is not "dumb"
    std::size_t width = 0;  ///< columns; 0: no limit (a pipe or a file)
};

Terminal standard_output();
Terminal standard_error();

enum class Style { Plain, Bold, Dim, Red };
/// `text` in that style, if the terminal supports colour.
std::string styled(const Terminal& terminal, Style style, std::string_view text);

/// Writes to stdout, unbuffered. If the reader has closed the pipe (`| head`), the process ends quietly, as
/// if by SIGPIPE; every other failure throws marey::Error.
void write_out(std::string_view text);
/// Writes CSV, JSON or other text with one record per line to stdout: control characters in names become
/// escapes (printable()), which are JSON's own in JSON.
void write_data(std::string_view text);
/// Writes to stderr; failures are ignored.
void print_error(std::string_view text) noexcept;

}  // namespace marey::cli
