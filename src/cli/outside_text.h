// outside_text.h: what a process that is not recorded is doing, for people.
#pragma once

#include <string>

#include <marey/outside.h>

#include "cli/terminal.h"

namespace marey::cli {

/// Findings first, then a line for each thread.
std::string outside_text(const OutsideProcess& process, const Terminal& terminal);

}  // namespace marey::cli
