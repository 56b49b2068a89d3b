// finding_rule.h: what the rules of explain() read, and how they state a finding.
#pragma once

#include <algorithm>
#include <utility>

#include <marey/findings.h>
#include <marey/steps.h>

#include "analyze/findings/finding_facts.h"
#include "analyze/ranks/finding_text.h"

namespace marey {

/// Rows of evidence of one kind.
inline constexpr std::size_t kMostEvidence = 4;

/// Follows the name of a function in the evidence of calls.tiny.
inline constexpr std::string_view kThatCalls = " itself, which makes these calls";

using Findings = std::vector<Finding>;

/// The trace, with what several rules need.
struct FindingInput {
    const Trace& whole;  ///< as it was recorded
    const Trace& trace;  ///< with folded imports; threads and processes are those of `whole`
    const ExplainOptions& options;
    FindingFacts facts;
    StepReport steps;                     ///< with the differences of the slowest steps
    std::vector<StepInfo> whole_steps{};  ///< of the thread with most steps, those that are not cut off
    std::int64_t window_ns = 0;

    double share(std::int64_t ns) const { return part(ns, window_ns); }
    /// "45% of the time".
    std::string of_time(std::int64_t ns) const { return percent_text(share(ns)) + " of the time"; }
    /// Whether a time is worth a finding: this share of the window, and a millisecond.
    bool is_much(std::int64_t ns, double least_share) const {
        return ns >= 1'000'000 && share(ns) >= least_share;
    }
    std::string thread_text(Row thread) const;
    static double part(std::int64_t of, std::int64_t whole) {
        return whole > 0 ? static_cast<double>(of) / static_cast<double>(whole) : 0;
    }
};

/// Adds a finding of a rule. `name` is the range or function that it is about; "NAME" in the rule's command
/// stands for it.
Finding& add_finding(const FindingInput& in, Findings& findings, std::string_view id, std::int64_t gain_ns,
                     std::string claim, std::string_view name = {});
/// Adds a row of evidence. Numbers that do not apply are negative.
void add_evidence(Finding& finding, std::string text, std::int64_t count, std::int64_t time_ns = -1,
                  std::int64_t bytes = -1);
/// Sets the place to look at to a range of the folded trace, or to a step.
void set_place(const FindingInput& in, Finding& finding, Row range);
void set_place(Finding& finding, const StepInfo& step);

/// "parse (app.py:12)": a name in a sentence.
std::string in_words(std::string_view name);
/// "1,204 times", "once".
std::string times_text(std::uint64_t count);
std::string count_text(std::uint64_t count);
/// "64.0 MiB".
std::string bytes_text(std::int64_t bytes);

// The rules: one file each, or a few that share their evidence.
void find_recording_costs(const FindingInput& in, Findings& findings);
void find_self_time(const FindingInput& in, Findings& findings);
void find_tiny_calls(const FindingInput& in, Findings& findings);
void find_repeated_ranges(const FindingInput& in, Findings& findings);
void find_serial_threads(const FindingInput& in, Findings& findings);
void find_step_times(const FindingInput& in, Findings& findings);
void find_input_waits(const FindingInput& in, Findings& findings);
void find_purposes(const FindingInput& in, Findings& findings);
void find_blocked_loops(const FindingInput& in, Findings& findings);
void find_memory(const FindingInput& in, Findings& findings);
void find_gpu_problems(const FindingInput& in, Findings& findings);
void find_rank_problems(const FindingInput& in, Findings& findings);

}  // namespace marey
