// sample_text.h: what samples say, as text: of reports and of the summary of a run.
#pragma once

#include <cstddef>
#include <string>

#include <marey/samples.h>

#include "cli/terminal.h"

namespace marey::cli {

/// The trace with the names of its samples' native functions, from the files on this machine.
Trace with_function_names(Trace trace);

/// Whether a trace has samples, and no ranges but those of garbage collections.
bool has_only_samples(const Trace& trace);

/// The rows with the most self time.
std::string sample_rows_text(const Trace& trace, const SampleReport& report, std::string_view heading,
                             std::size_t limit, const Terminal& terminal);
/// One fact a line: samples and rate, running, waiting by kind, losses. Empty if there are no samples.
std::string sample_facts(const Trace& trace, const SampleReport& report, const Terminal& terminal);
/// Both, with a title; for reports of something else. Empty if there are no samples.
std::string sample_section(const Trace& trace, const Terminal& terminal);

}  // namespace marey::cli
