// validate.h: whether a trace, or a file that holds one, keeps the promises that tools rely on.
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
struct Finding {
    std::string rule;         ///< short and stable: "nesting", "flow_without_end", ...
    std::uint64_t count = 0;  ///< how often
    std::string example;      ///< the first time, in one line for people
};

/// A rule and what it says.
struct ValidationRule {
    std::string_view name;
    std::string_view text;
};

/// Every rule, those of all traces first, then those of Chrome's JSON as a text.
MAREY_API std::span<const ValidationRule> validation_rules() noexcept;

/// Checks a trace in memory: at most one finding for each rule, in the order of the rules; empty: it keeps
/// them all. Linear in the size of the trace, but for sorting what has numbers.
MAREY_API std::vector<Finding> validate(const Trace& trace);
/// Checks a file of any format that open_trace reads, and Chrome's JSON (also gzip) as a text too. `format`
/// as there: empty, the file's first bytes tell it. Throws marey::Error when it cannot be read.
MAREY_API std::vector<Finding> validate_file(const std::string& path, std::string_view format = {});

/// {"file": ..., "clean": ..., "findings": [{"rule", "count", "example"}]}
MAREY_API std::string findings_json(std::span<const Finding> findings, std::string_view file);

}  // namespace marey
