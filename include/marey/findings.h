// findings.h: what stands out in a trace: causes of lost time and memory, with evidence, largest gain first.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// How far the trace proves a finding.
enum class FindingCertainty : std::uint8_t {
    Certain,   ///< the claim is a sum of recorded times, counts or bytes
    Likely,    ///< the cause follows from what was recorded; the real gain may be much smaller
    Possible,  ///< the program may have a reason that a trace cannot show
};

/// "certain", "likely" or "possible".
MAREY_API const char* certainty_name(FindingCertainty certainty) noexcept;

/// One row of evidence. Numbers that do not apply are negative.
struct FindingEvidence {
    std::string text;
    std::int64_t count = -1;
    std::int64_t time_ns = -1;
    std::int64_t bytes = -1;
};

/// Something that stands out.
struct Finding {
    std::string id;     ///< of its rule: "gpu.starved"
    std::string claim;  ///< one sentence
    /// The largest possible gain; 0: unknown. For function.self, it is that of twice the speed.
    std::int64_t gain_ns = 0;
    double gain_share = 0;        ///< gain_ns as a share of the window
    std::int64_t gain_bytes = 0;  ///< the same for memory
    /// Something is wrong: records were lost, a rank hangs. Such findings come first.
    bool is_fault = false;
    FindingCertainty certainty = FindingCertainty::Certain;
    std::string name;  ///< the range, function or rank that it is about; empty: none
    Row process = kNoRow;
    Row thread = kNoRow;
    std::int64_t start_ns = -1;  ///< a place to look at, with its duration; -1: none
    std::int64_t duration_ns = 0;
    std::vector<FindingEvidence> evidence;  ///< never empty
    std::string advice;                     ///< what to do
    std::string command;                    ///< shows it; "FILE" stands for the file
};

/// A rule, and what its findings have in common.
struct FindingRule {
    std::string_view id;
    FindingCertainty certainty;
    std::string_view command;
    std::string_view advice;
};
/// Returns every rule; docs/guide/explain.md has their conditions.
MAREY_API std::span<const FindingRule> finding_rules() noexcept;

/// Options of explain().
struct ExplainOptions {
    /// Only findings that mention it, in any case: in their id, name, claim or evidence.
    std::string about = {};
    std::string step_name = {};  ///< as in StepOptions
};

/// Finds what stands out in a trace, faults first, then the largest gain; empty if nothing does. Takes linear
/// time in ranges, and O(n log n) in device work and allocation reports. Rows of threads and processes are
/// those of `trace`.
MAREY_API std::vector<Finding> explain(const Trace& trace, const ExplainOptions& options = {});

}  // namespace marey
