// serial_threads.cpp: threads.serial: one thread works while the others that share the work have nothing to
// do.
#include "analyze/findings/finding_rule.h"

namespace marey {
namespace {

/// How long at least one of these threads worked while none of the others did. In each part of the window,
/// that is the time by which it worked longer than all others together.
std::int64_t alone_ns(const FindingInput& in, Row thread, const std::vector<Row>& workers) {
    double alone = 0;
    for (std::size_t i = 0; i < FindingFacts::kBuckets; ++i) {
        double own = in.facts.busy[thread][i];
        for (const Row other : workers) own -= other == thread ? 0 : in.facts.busy[other][i];
        alone += std::max(own, 0.0);
    }
    return static_cast<std::int64_t>(alone);
}

}  // namespace

void find_serial_threads(const FindingInput& in, Findings& findings) {
    constexpr double kWorkerShare = 0.05, kAloneShare = 0.4;  // of the window
    constexpr std::size_t kLeastWorkers = 3;
    std::vector<std::vector<Row>> workers(in.trace.processes().size());
    for (Row thread = 0; thread < in.facts.busy.size(); ++thread) {
        if (in.share(in.facts.busy_ns[thread]) >= kWorkerShare)
            workers[in.trace.threads()[thread].process].push_back(thread);
    }
    for (std::vector<Row>& all : workers) {
        if (all.size() < kLeastWorkers) continue;
        std::ranges::stable_sort(all, std::greater<>(), [&](Row row) { return in.facts.busy_ns[row]; });
        const std::int64_t time_ns = alone_ns(in, all.front(), all);
        if (!in.is_much(time_ns, kAloneShare)) continue;
        const auto count = static_cast<std::int64_t>(all.size());
        Finding& finding = add_finding(
            in, findings, "threads.serial", time_ns / count * (count - 1),
            "for " + in.of_time(time_ns) + ", only " + in.thread_text(all.front()) + " works, while " +
                std::to_string(count - 1) + " other threads that share the work have nothing to do");
        finding.thread = all.front();
        add_evidence(finding, "it works alone, at least", -1, time_ns);
        for (std::size_t i = 0; i < std::min(all.size(), kMostEvidence); ++i)
            add_evidence(finding, in.thread_text(all[i]) + " works", -1, in.facts.busy_ns[all[i]]);
    }
}

}  // namespace marey
