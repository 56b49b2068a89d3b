// run_summary.h: what `marey run` says at the end: where the time went, and what to type next.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal.h"

namespace marey::cli {

struct RunSummary {
    std::string text;
    std::string best;  ///< the capture that the next commands are about; empty: nothing was recorded in any
};

/// Of the captures of one run, that of the program itself first. `why_empty`: said of that one where it holds
/// nothing. Never throws for what a capture holds.
RunSummary summarize_run(const std::vector<std::string>& captures, std::string_view why_empty,
                         const Terminal& terminal);

}  // namespace marey::cli
