// main.cpp: the command `marey`.
#include "cli/command_line.h"

/// Tells libmarey that this program is not to be recorded, whatever the environment asks for: it is meant for
/// others.
extern "C" {
extern __attribute__((visibility("default"))) const char marey_is_the_command;
const char marey_is_the_command = 1;
}

int main(int argc, char** argv) {
    return marey::cli::run_command_line(argc, argv);
}
