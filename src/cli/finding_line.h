// finding_line.h: findings in one line each.
#pragma once

#include <fmt/format.h>

#include <string>

#include <marey/findings.h>
#include <marey/ranks.h>

#include "cli/terminal.h"
#include "cli/text_format.h"

namespace marey::cli {

/// "calls.tiny, up to 1.20 s (45%), likely: f is called ...".
inline std::string finding_line(const Finding& finding) {
    std::string text = finding.id;
    if (finding.gain_ns > 0)
        text += fmt::format(", up to {} ({})", format_duration(finding.gain_ns),
                            format_share(finding.gain_share));
    if (finding.gain_bytes > 0)
        text += fmt::format(", up to {}", format_bytes(static_cast<double>(finding.gain_bytes)));
    if (!finding.is_fault) text += std::string(", ") + certainty_name(finding.certainty);
    return text + ": " + printable(finding.claim);
}

/// A line for each finding about a job: that something is wrong with it, or what takes time.
inline std::string rank_findings(const RankReport& report, bool are_faults, const Terminal& terminal) {
    std::string text;
    for (const RankFinding& finding : report.findings) {
        if ((finding.share == 0) == are_faults)
            text += styled(terminal, Style::Red, finding.rule) + ": " + printable(finding.text) + "\n";
    }
    return text;
}

}  // namespace marey::cli
