// main.cpp: the command `kymo`.
#include "cli/command_line.h"

/// Tells libkymo that this program is not to be recorded, whatever the environment asks for: it is meant for
/// others.
extern "C" {
extern __attribute__((visibility("default"))) const char kymo_is_the_command;
const char kymo_is_the_command = 1;
}

int main(int argc, char** argv) {
    return kymo::cli::run_command_line(argc, argv);
}
