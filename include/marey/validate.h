// validate.h: checks that a trace, or a trace file, keeps the rules that tools rely on.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <marey/detail/export.h>
#include <marey/trace.h>

namespace marey {

/// A rule that was broken.
struct Violation {
    std::string rule;         ///< short and stable: "nesting", "flow_without_end", ...
    std::uint64_t count = 0;  ///< number of violations
    std::string example;      ///< the first violation, as one line for users
};

/// A rule and its description.
struct ValidationRule {
    std::string_view name;
    std::string_view text;
};

/// Returns every rule: first those for all traces, then those for the text of Chrome's JSON.
MAREY_API std::span<const ValidationRule> validation_rules() noexcept;

/// Checks a trace in memory. Returns at most one violation for each rule, in the order of the rules; empty if
/// the trace keeps them all. Takes linear time in the size of the trace, except for sorting ids.
MAREY_API std::vector<Violation> validate(const Trace& trace);
/// Checks a file in any format that open_trace() reads; for Chrome's JSON (also gzip), checks the text too.
/// `format` works as in open_trace(): if it is empty, the format is detected. Throws marey::Error if the file
/// cannot be read.
MAREY_API std::vector<Violation> validate_file(const std::string& path, std::string_view format = {});

/// Returns JSON text: {"file": ..., "clean": ..., "violations": [{"rule", "count", "example"}]}
MAREY_API std::string violations_json(std::span<const Violation> violations, std::string_view file);

}  // namespace marey
