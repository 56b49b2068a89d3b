// main.cpp: the command `marey`.
#include <csignal>

#include "cli/command_line.h"

/// Prevents libmarey from recording this program: the settings in the environment are for other programs.
extern "C" {
extern __attribute__((visibility("default"))) const char marey_is_the_command;
const char marey_is_the_command = 1;
}

int main(int argc, char** argv) {
    // A file that grows beyond RLIMIT_FSIZE is then an error of the write, which verbs report, instead of the
    // end of a run. A handler, because programs that this command starts do not inherit it.
    if (std::signal(SIGXFSZ, [](int) {}) == SIG_IGN) std::signal(SIGXFSZ, SIG_IGN);
    return marey::cli::run_command_line(argc, argv);
}
