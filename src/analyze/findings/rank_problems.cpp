// rank_problems.cpp: rank.*: the findings of rank_report(), for a trace of several ranks.
#include <marey/error.h>
#include <marey/ranks.h>

#include "analyze/findings/finding_rule.h"

namespace marey {

void find_rank_problems(const FindingInput& in, Findings& findings) {
    const auto has_rank = [](const ProcessInfo& process) { return process.node >= 0; };
    if (std::ranges::count_if(in.whole.processes(), has_rank) < 2) return;
    RankReport report;
    try {
        report = rank_report({&in.whole, 1}, {.step_name = in.options.step_name});
    } catch (const Error&) {
        return;  // two processes have one rank: marey ranks explains it
    }
    for (const RankFinding& found : report.findings) {
        const double whole_ns = report.steps.empty()
                                    ? static_cast<double>(in.window_ns)
                                    : report.mean_step_ns * static_cast<double>(report.steps.size());
        Finding& finding =
            add_finding(in, findings, "rank." + found.rule, static_cast<std::int64_t>(found.share * whole_ns),
                        found.text, found.rank < 0 ? "" : "rank " + std::to_string(found.rank));
        finding.is_fault = found.share == 0;
        add_evidence(finding, "ranks compared", std::ssize(report.ranks));
        add_evidence(finding, "collectives of two ranks or more",
                     static_cast<std::int64_t>(report.collectives));
        for (const RankInfo& rank : report.ranks) {
            if (rank.rank == found.rank && rank.delayed_ns > 0)
                add_evidence(finding, "collectives that it entered last, and delay by it alone",
                             static_cast<std::int64_t>(rank.times_last), rank.delayed_ns);
        }
        for (Row row = 0; row < in.whole.processes().size() && found.rank >= 0; ++row) {
            if (in.whole.processes()[row].node == found.rank) finding.process = row;
        }
    }
}

}  // namespace marey
