// run_summary.h: the summary that `marey run` prints at the end: where the time went, and what to run next.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <marey/trace.h>

#include "cli/terminal.h"

namespace marey::cli {

struct RunSummary {
    std::string text;
    std::string best;    ///< the capture to use in the next commands; empty: all captures are empty
    std::string extent;  ///< "1,204 ranges in 41.2 s" of all captures; empty: some were not read
};

/// Whether a Python program got as far as its first line. Not if its file or module does not exist, or cannot
/// be compiled.
bool ran_program(const Trace& trace);

/// Summarizes the captures of one run, the program's own capture first. `why_empty` is printed for that
/// capture if it is empty. Unreadable captures are listed with the reason; they do not throw.
RunSummary summarize_run(const std::vector<std::string>& captures, std::string_view why_empty,
                         const Terminal& terminal);

}  // namespace marey::cli
