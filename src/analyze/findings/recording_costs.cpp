// recording_costs.cpp: recording.lost and recording.overhead: how far the other numbers can be trusted.
#include <marey/analyze.h>

#include "analyze/findings/finding_rule.h"

namespace marey {

void find_recording_costs(const FindingInput& in, Findings& findings) {
    constexpr double kLostShare = 0.01;      // of all events
    constexpr double kOverheadShare = 0.25;  // of the window, on one thread
    std::int64_t lost = 0, kept = 0;
    const std::vector<ThreadTotals> totals = thread_totals(in.whole);
    for (const ThreadInfo& thread : in.whole.threads()) lost += static_cast<std::int64_t>(thread.dropped);
    for (const ThreadTotals& thread : totals) kept += static_cast<std::int64_t>(thread.events());
    const double share = FindingInput::part(lost, lost + kept);
    const bool is_damaged = in.whole.has_problem("truncated") || in.whole.has_problem("damaged_chunk");
    const bool is_cut = in.whole.window().size_limit_reached && in.whole.window().policy == "stop";
    if (share >= kLostShare || is_cut || is_damaged) {
        Finding& finding = add_finding(
            in, findings, "recording.lost", 0,
            is_cut ? "the recording stopped at its size limit: everything after that is missing"
            : is_damaged
                ? "a part of the file is damaged or missing: all counts and times are too small"
                : percent_text(share) + " of the events were lost: all counts and times are too small");
        finding.is_fault = true;
        if (is_damaged && !is_cut) finding.advice = "Copy the file again if it is a copy; else record again.";
        add_evidence(finding, "events kept", kept);
        if (lost > 0) add_evidence(finding, "events lost", lost);
        if (is_cut)
            add_evidence(finding, "size limit", -1, -1,
                         static_cast<std::int64_t>(in.whole.window().max_bytes));
    }
    const Overhead overhead = estimate_overhead(in.whole);
    if (!overhead.known || overhead.busiest_share < kOverheadShare) return;
    const double part = std::min(overhead.busiest_share, 1.0);
    Finding& finding = add_finding(in, findings, "recording.overhead", 0,
                                   "recording took about " + percent_text(part) + " of the time on " +
                                       in.thread_text(overhead.busiest_thread) +
                                       ": functions that make many short calls look slower than they are");
    finding.thread = overhead.busiest_thread;
    add_evidence(finding, "events on that thread, and the estimated time to record them",
                 static_cast<std::int64_t>(totals[overhead.busiest_thread].events()),
                 static_cast<std::int64_t>(part * static_cast<double>(in.window_ns)));
}

}  // namespace marey
