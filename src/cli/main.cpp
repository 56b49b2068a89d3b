// main.cpp: the command `marey`.
#include "cli/command_line.h"

/// Prevents libmarey from recording this program: the settings in the environment are for other programs.
extern "C" {
extern __attribute__((visibility("default"))) const char marey_is_the_command;
const char marey_is_the_command = 1;
}

int main(int argc, char** argv) {
    return marey::cli::run_command_line(argc, argv);
}
